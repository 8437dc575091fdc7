# The program in an image with nothing else in it. There is no base, so none has to be
# pinned or patched, and nothing runs while the image is built, so it can be built for
# other architectures as it is. `make image` compiles the program first.
#
# The program trusts the API server by the CA that comes with its service account.
#
# As a command: docker run --rm --volume "$PWD":/src --workdir /src IMAGE check .
FROM scratch
ARG TARGETARCH
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="multi-attach-guard" \
      org.opencontainers.image.description="Keeps Kubernetes rollouts from ending in a Multi-Attach error" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY LICENSE /LICENSE
COPY --chmod=755 target/programs/linux/${TARGETARCH}/multi-attach-guard /multi-attach-guard
USER 65532:65532
EXPOSE 8443 8080
ENTRYPOINT ["/multi-attach-guard"]

# Two images without a base, so none has to be pinned or patched. Nothing runs while they
# are built, so they can be built for other architectures as they are. `make image` and
# `make image-check` compile the programs first.
#
# The last one, which is built by default, has the program and nothing else, for the
# webhook. It trusts the API server by the CA that comes with its service account.
#
# The target `check` also has helm and kustomize, for charts and kustomizations:
# docker run --rm --volume "$PWD":/src --workdir /src IMAGE-check check --fail-on incomplete --fail-if-no-objects .
FROM scratch AS webhook
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

FROM webhook AS check
ARG TARGETARCH
# helm, kustomize, and a folder for temporary files.
COPY target/renderers/linux/${TARGETARCH}/ /
ENV PATH=/

FROM webhook

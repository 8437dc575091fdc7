# The program in an image with nothing else in it. It trusts the API server by the
# authority that comes with its service account.
#
# BUILDER is the image it is compiled in. To build the same image again later, name it
# by its digest: docker build --build-arg BUILDER=rust:1-alpine@sha256:… .
# For other machines: docker buildx build --platform linux/amd64,linux/arm64 .
ARG BUILDER=rust:1-alpine
FROM ${BUILDER} AS build
RUN apk add --no-cache build-base
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY benches benches
COPY tests tests
# Alpine's target links musl statically, so the binary needs no libc.
RUN cargo build --locked --release --bin multi-attach-guard && \
    strip target/release/multi-attach-guard

FROM scratch
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="multi-attach-guard" \
      org.opencontainers.image.description="Keeps Kubernetes rollouts from ending in a Multi-Attach error" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY LICENSE /LICENSE
COPY --from=build /src/target/release/multi-attach-guard /multi-attach-guard
USER 65532:65532
EXPOSE 8443 8080
ENTRYPOINT ["/multi-attach-guard"]

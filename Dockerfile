# The program in an image with nothing else in it. It trusts the API server by the
# authority that comes with its service account.
FROM docker.io/library/rust:1-alpine AS build
RUN apk add --no-cache build-base
WORKDIR /src
COPY . .
# Alpine's target links musl statically, so the binary needs no libc.
RUN cargo build --locked --release --bin multi-attach-guard

FROM scratch
COPY --from=build /src/target/release/multi-attach-guard /multi-attach-guard
USER 65532:65532
EXPOSE 8443 8080
ENTRYPOINT ["/multi-attach-guard"]

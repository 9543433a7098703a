# A small image of smartfeed: the binary and the C library, without a shell, not root.
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
ARG TARGETARCH
# The C compiler of the other platform: it builds the image for that platform without emulation.
RUN [ "$TARGETARCH" = "$(go env GOHOSTARCH)" ] || { apt-get update -q && apt-get install -qy --no-install-recommends "crossbuild-essential-$TARGETARCH"; }
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
# With cgo, Pebble allocates its caches and memtables outside the Go heap, so they do not double with the garbage collector.
RUN case $TARGETARCH in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; esac && \
    CGO_ENABLED=1 GOARCH=$TARGETARCH CC=$machine-linux-gnu-gcc \
    go build -trimpath -ldflags "-s -w -X github.com/smartfeed/smartfeed/app.version=${VERSION}" -o /smartfeed . && mkdir /data

# The C library of the Debian release of the build image.
FROM gcr.io/distroless/base-nossl-debian12:nonroot@sha256:be40c00dfabd86576d92666e87e406714d5618342de1a0c213ad232de255172e
ARG VERSION=unknown
LABEL org.opencontainers.image.title="smartfeed" \
      org.opencontainers.image.description="Ranked home feeds and near-real-time features from Kafka events" \
      org.opencontainers.image.source="https://github.com/smartfeed/smartfeed" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /smartfeed /smartfeed
COPY --from=build --chown=nonroot:nonroot /data /data
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["/smartfeed"]
# By default, the image runs all parts in one process with simulated users, for evaluation:
#
#   docker run --rm -p 127.0.0.1:8080:8080 ghcr.io/smartfeed/smartfeed
#
# A published port reaches only servers that listen beyond the container's loopback. With authentication off, the server rejects
# such an address unless api.insecure is set, and then logs a warning. Publish the port on loopback, as above, or run your own
# command with auth.jwks or auth.secret_file. The flags below do not apply to your own command.
CMD ["dev", "--demo", "--dir", "/data", "--http", "0.0.0.0:8080", "--api.insecure"]

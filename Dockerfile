# A small image of smartfeed: the binary and the C library, without a shell, not root.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
# With cgo, Pebble allocates its caches and memtables outside the Go heap, so they do not double with the garbage collector.
RUN CGO_ENABLED=1 go build -trimpath -ldflags "-s -w -X github.com/smartfeed/smartfeed/app.version=${VERSION}" -o /smartfeed . && mkdir /data

# The C library of the Debian release of the build image.
FROM gcr.io/distroless/base-nossl-debian12:nonroot
COPY --from=build /smartfeed /smartfeed
COPY --from=build --chown=nonroot:nonroot /data /data
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["/smartfeed"]
# By default, the image runs all parts in one process, for evaluation:
#
#   docker run -p 127.0.0.1:8080:8080 smartfeed:local
#
# A published port reaches only servers that listen beyond the container's loopback. With authentication off, the server rejects
# such an address unless api.insecure is set, and then logs a warning. Publish the port on loopback, as above, or run your own
# command with auth.jwks or auth.secret_file. The flags below do not apply to your own command.
CMD ["dev", "--dir", "/data", "--http", "0.0.0.0:8080", "--api.insecure"]

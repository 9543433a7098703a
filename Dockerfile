# smartfeed in a small image: the binary and the C library, no shell, not root.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
# With cgo, Pebble's caches and memory tables are not in Go's heap: its collector does not let them grow by as much again.
RUN CGO_ENABLED=1 go build -trimpath -ldflags "-s -w -X github.com/smartfeed/smartfeed/app.version=${VERSION}" -o /smartfeed . && mkdir /data

# The C library of the Debian release that the program was built on.
FROM gcr.io/distroless/base-nossl-debian12:nonroot
COPY --from=build /smartfeed /smartfeed
COPY --from=build --chown=nonroot:nonroot /data /data
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["/smartfeed"]
# Without a command the image runs everything in one process, for evaluation:
#
#   docker run -p 127.0.0.1:8080:8080 smartfeed:local
#
# A published port reaches only servers that listen beyond the container's loopback. Authentication is off, so the server refuses
# that address unless api.insecure is set, and logs a warning: publish the port on loopback, as above, or give a command of your own
# with auth.jwks or auth.secret_file, to which these flags do not apply.
CMD ["dev", "--dir", "/data", "--http", "0.0.0.0:8080", "--api.insecure"]

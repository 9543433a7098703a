# smartfeed in a small image: the binary and the C library, no shell, not root.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
# With cgo, Pebble's caches and memory tables are not in Go's heap: its collector does not let them grow by as much again.
RUN CGO_ENABLED=1 go build -trimpath -ldflags "-s -w -X github.com/smartfeed/smartfeed/product.version=${VERSION}" -o /smartfeed . && mkdir /data

# The C library of the Debian release that the program was built on.
FROM gcr.io/distroless/base-nossl-debian12:nonroot
COPY --from=build /smartfeed /smartfeed
COPY --from=build --chown=nonroot:nonroot /data /data
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["/smartfeed"]
CMD ["dev", "--dir", "/data"]

# smartfeed in a small image: the static binary, no shell, not root.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/smartfeed/smartfeed/product.version=${VERSION}" -o /smartfeed . && mkdir /data

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /smartfeed /smartfeed
COPY --from=build --chown=nonroot:nonroot /data /data
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["/smartfeed"]
CMD ["dev", "--dir", "/data"]

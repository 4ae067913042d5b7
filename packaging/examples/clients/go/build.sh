#!/bin/sh
# build.sh OUT: builds the program OUT from follow.go, with Go and the packages of Debian 12 alone, without a network:
#
#   apt install golang-go golang-google-grpc-dev golang-google-protobuf-dev golang-github-golang-protobuf-1-5-dev \
#       protobuf-compiler protoc-gen-go protoc-gen-go-grpc
#
# NODEAGENT_PROTO is the folder of the definitions.
set -eu
out=$(realpath -m "$1")
proto=${NODEAGENT_PROTO:-/usr/share/nodeagent/proto}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Where the generated code is to stand in this program; without it, it is where the definitions say (go_package).
options=
for name in types fault_service; do
    file="nodeagent/v1/$name.proto=example/nodeagentv1;nodeagentv1"
    options="$options --go_opt=M$file --go-grpc_opt=M$file"
done
mkdir -p "$work/src/example/follow"
# shellcheck disable=SC2086 # several options
protoc -I "$proto" --go_out="$work/src" --go-grpc_out="$work/src" $options \
    nodeagent/v1/types.proto nodeagent/v1/fault_service.proto
cp "$here/follow.go" "$work/src/example/follow/"
# Debian's packages are sources below /usr/share/gocode, in the form before modules.
cd "$work/src/example/follow"
GO111MODULE=off GOFLAGS='' GOPATH="$work:/usr/share/gocode" go build -o "$out" .

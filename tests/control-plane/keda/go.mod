// KEDA's operator, which tests/custom_workloads runs; ../build-controller compiles it as a main
// module, with the replacements of its own go.mod. go.sum pins it. To move to another release: change the
// version here, then go mod download in this folder.
module multi-attach-guard.dev/tests/control-plane/keda

go 1.26.0

require github.com/kedacore/keda/v2 v2.21.0

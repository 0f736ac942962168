// Command etcd is the etcd server alone: the upstream main lives in a module which the Go proxy does not
// need to have, and the tests need neither its client tools nor its gateway.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}

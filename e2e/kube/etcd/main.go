// Command etcd is the etcd server. Upstream's own main package is in a module whose 3.7 releases the Go module
// proxy does not have; the server module has all but these few lines.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}

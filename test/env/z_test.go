package env
import ("testing";"sigs.k8s.io/controller-runtime/pkg/envtest";"k8s.io/client-go/discovery")
func TestZ(t *testing.T) {
	e := &envtest.Environment{}
	c, err := e.Start()
	if err != nil { t.Fatal(err) }
	t.Log(discovery.NewDiscoveryClientForConfigOrDie(c).ServerVersion())
	t.Log(e.Stop())
}

package cpu

import "testing"

func TestParseStat(t *testing.T) {
	got, err := parseStat([]byte("cpu  100 1 200 3000 4 5 60 7 0 0\ncpu0 1 2 3\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Times{User: 1, Nice: .01, System: 2, Idle: 30, IOWait: .04, IRQ: .05, SoftIRQ: .6, Steal: .07}
	if got != want {
		t.Errorf("parseStat = %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "cpu 1 2\n", "intr 1 2 3 4 5 6 7 8 9\n", "cpu a b c d e f g h i\n"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("parseStat(%q) took it", bad)
		}
	}
}

func TestDescribe(t *testing.T) {
	i, err := Describe()
	if err != nil {
		t.Fatal(err)
	}
	if i.Kernel == "" || i.CPUs == 0 || i.BootID == "" {
		t.Errorf("Describe = %+v, want a kernel, CPUs and a boot id", i)
	}
}

func TestHostRises(t *testing.T) {
	a, err := Host()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Host()
	if err != nil {
		t.Fatal(err)
	}
	if d := b.Sub(a); d.Busy() < 0 || d.Idle < 0 {
		t.Errorf("time went backwards: %+v", d)
	}
}

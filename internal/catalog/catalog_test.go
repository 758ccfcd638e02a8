package catalog_test

import (
	"errors"
	"testing"

	"github.com/offlab/offlab/internal/catalog"
)

type thing struct{ name, about string }

func (t thing) Name() string  { return t.name }
func (t thing) About() string { return t.about }

func TestFind(t *testing.T) {
	c := catalog.New("thing", thing{"a", "x"}, thing{"b-2", "y"})
	if got, err := c.Find("b-2"); err != nil || got.about != "y" {
		t.Errorf(`Find("b-2") = %v, %v; want y`, got, err)
	}
	_, err := c.Find("c")
	var unknown *catalog.UnknownError
	if !errors.As(err, &unknown) || err.Error() != `unknown thing "c" (have a, b-2)` {
		t.Errorf(`Find("c") error = %v`, err)
	}
}

func TestNewPanics(t *testing.T) {
	for name, entries := range map[string][]thing{
		"order":     {{"b", "x"}, {"a", "x"}},
		"twice":     {{"a", "x"}, {"a", "x"}},
		"malformed": {{"A b", "x"}},
		"silent":    {{"a", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("New did not panic")
				}
			}()
			catalog.New("thing", entries...)
		})
	}
}

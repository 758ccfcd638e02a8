package model

import (
	"github.com/offlab/offlab/internal/catalog"
	"github.com/offlab/offlab/internal/softnic"
)

// An Entry is a model in the catalog.
type Entry struct{ softnic.Model }

// Name returns the name used on the command line.
func (e Entry) Name() string { return e.Model.Name }

// About describes the card in one line.
func (e Entry) About() string { return e.Model.About }

// Models is the catalog of models, in alphabetical order.
var Models = catalog.New("model",
	Entry{bgmac},
	Entry{bnx2x},
	Entry{bnx2xLRO},
	Entry{fec},
	Entry{generic},
	Entry{mv643xx},
	Entry{mv643xxNoLRO},
	Entry{qede},
	Entry{stmmac},
)

// Find returns the model of a name. The error of an unknown name lists the
// names there are.
func Find(name string) (softnic.Model, error) {
	e, err := Models.Find(name)
	return e.Model, err
}

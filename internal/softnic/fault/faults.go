package fault

import (
	"github.com/offlab/offlab/internal/catalog"
	"github.com/offlab/offlab/internal/softnic"
)

// An Entry is a fault in the catalog.
type Entry struct{ softnic.Fault }

// Name returns the name used on the command line.
func (e Entry) Name() string { return e.Fault.Name }

// About says in one line what goes wrong.
func (e Entry) About() string { return e.Fault.About }

// Faults is the catalog of faults, in alphabetical order.
var Faults = catalog.New("fault",
	Entry{badCsumGood},
	Entry{csumPartial},
	Entry{csumPort},
	Entry{csumSecond},
	Entry{csumShort},
	Entry{csumVLAN},
	Entry{cwrAll},
	Entry{forwardedDrop},
	Entry{forwardedTSO},
	Entry{ipID},
	Entry{lroForward},
	Entry{mergeFixed},
	Entry{mssBits},
	Entry{mssMin},
	Entry{outerCsum},
	Entry{partialDrop},
	Entry{pshLost},
	Entry{retransmitDrop},
	Entry{ringStuck},
	Entry{segmentOrder},
	Entry{trailer},
	Entry{tsoClaimed},
	Entry{tunnel6Drop},
	Entry{VLANFirst},
)

// Find returns the fault of a name. The error of an unknown name lists the
// names there are.
func Find(name string) (softnic.Fault, error) {
	e, err := Faults.Find(name)
	return e.Fault, err
}

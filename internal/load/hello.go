package load

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
)

// A data connection starts with one message each way, then carries payload
// from the sender only.
//
//	sender → receiver, 32 bytes: "offlab" 0 version, token (16), stream, streams
//	receiver → sender, 8 bytes:  "offlab" 0 version
//
// Numbers are 32 bits, most significant byte first. A receiver that does not
// want the connection closes it without an answer.
const (
	helloSize  = 32
	acceptSize = 8
	version    = 1
)

var magic = [acceptSize]byte{'o', 'f', 'f', 'l', 'a', 'b', 0, version}

// A hello is what a sender says of a data connection.
type hello struct {
	token           Token
	stream, streams int
}

var (
	errForeign = errors.New("not a connection of this program")
	errToken   = errors.New("the token of another run")
)

func (h hello) bytes() []byte {
	b := append(make([]byte, 0, helloSize), magic[:]...)
	b = append(b, h.token[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(h.stream))
	return binary.BigEndian.AppendUint32(b, uint32(h.streams))
}

// parseHello reads a hello and checks it against the numbers it must have.
func parseHello(b []byte, want Token, streams int) (hello, error) {
	if len(b) != helloSize || [acceptSize]byte(b[:acceptSize]) != magic {
		if len(b) == helloSize && string(b[:7]) == string(magic[:7]) {
			return hello{}, fmt.Errorf("protocol version %d, this is %d", b[7], version)
		}
		return hello{}, errForeign
	}
	if subtle.ConstantTimeCompare(b[8:24], want[:]) != 1 {
		return hello{}, errToken
	}
	stream, total := binary.BigEndian.Uint32(b[24:]), binary.BigEndian.Uint32(b[28:])
	if uint64(total) != uint64(streams) || stream >= total {
		return hello{}, fmt.Errorf("stream %d of %d, want %d streams", stream, total, streams)
	}
	return hello{want, int(stream), streams}, nil
}

package gso

import "github.com/offlab/offlab/vnet"

// Split cuts the super-packet pkt, described by h, into frames. Frame i goes to
// dst[i], from o.Headroom on, and its length to sizes[i].
//
// It returns the number of frames written. If dst or sizes has too few
// elements, or dst[n] is too short for frame n, that number is n and the error
// ErrRoom: the frames before n are complete, nothing else was written, and a
// [Splitter] could go on from there. Any other error means that no frame was
// written.
//
// pkt is only read. The buffers must not overlap it or each other.
func Split(dst [][]byte, sizes []int, pkt []byte, h vnet.Header, o Options) (n int, err error) {
	var s Splitter
	if err := s.Reset(pkt, h, o); err != nil {
		return 0, err
	}
	for n < s.count {
		if n >= len(dst) || n >= len(sizes) || len(dst[n]) < o.Headroom {
			return n, ErrRoom
		}
		size, err := s.Frame(dst[n][o.Headroom:], n)
		if err != nil {
			return n, err
		}
		sizes[n] = size
		n++
	}
	return n, nil
}

// Scatter cuts the super-packet pkt, described by h, into segments whose
// headers lie one behind the other in scratch and whose payloads are parts of
// pkt.
//
// It returns the number of segments set. If dst or scratch is too small, the
// error is ErrRoom and the segments counted are complete. Any other error
// means that none was set.
//
// pkt is only read, and must stay as it is for as long as the segments are in
// use. scratch must not overlap it.
func Scatter(dst []Segment, scratch, pkt []byte, h vnet.Header, o Options) (n int, err error) {
	var s Splitter
	if err := s.Reset(pkt, h, o); err != nil {
		return 0, err
	}
	for n < s.count {
		if n >= len(dst) {
			return n, ErrRoom
		}
		if err := s.Segment(&dst[n], scratch, n); err != nil {
			return n, err
		}
		scratch = scratch[len(dst[n].Header):]
		n++
	}
	return n, nil
}

// Package packet gives views over the bytes of network packets.
package packet

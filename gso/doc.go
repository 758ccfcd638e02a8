// Package gso cuts a super-packet into segments, as Linux does.
package gso

// Package rig runs slots: it brings an arm about on the device of a lab, runs a
// load between the two hosts, and collects what both ends counted.
package rig

// Package knob sets, reads back and restores what can be changed on a device.
package knob

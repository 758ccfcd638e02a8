// Package lab builds the hosts of a study and the links between them.
package lab

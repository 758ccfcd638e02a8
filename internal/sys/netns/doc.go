// Package netns starts processes inside network namespaces.
package netns

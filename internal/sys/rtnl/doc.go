// Package rtnl makes and reads links, addresses and routes.
package rtnl

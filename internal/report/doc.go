// Package report renders a study.
package report

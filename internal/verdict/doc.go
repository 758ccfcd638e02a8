// Package verdict turns the slots of a study into verdicts.
package verdict

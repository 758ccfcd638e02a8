package study

// ReadLimit is Read with a smaller limit than MaxBytes.
var ReadLimit = read

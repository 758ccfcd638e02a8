// This file lets gro.go declare functions without a body.

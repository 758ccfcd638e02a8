//go:build !purego

#include "textflag.h"

// In the loops that copy, and with AVX-512, each 64-bit lane x is added twice:
// whole to A (modulo 1<<64) and its upper half to B. At the end the lower halves
// are A - B<<32, and the sum of the 32-bit words is A - B<<32 + B: three vector
// operations for 32 or 64 bytes, one fewer than masking both halves out.

// 32 bytes of zero, 32 of ones, 32 of zero: a load at n masks all but the last n
// bytes of a vector, one at 64-n all but the first n.
DATA ·edgeMask+0(SB)/8, $0
DATA ·edgeMask+8(SB)/8, $0
DATA ·edgeMask+16(SB)/8, $0
DATA ·edgeMask+24(SB)/8, $0
DATA ·edgeMask+32(SB)/8, $0xffffffffffffffff
DATA ·edgeMask+40(SB)/8, $0xffffffffffffffff
DATA ·edgeMask+48(SB)/8, $0xffffffffffffffff
DATA ·edgeMask+56(SB)/8, $0xffffffffffffffff
DATA ·edgeMask+64(SB)/8, $0
DATA ·edgeMask+72(SB)/8, $0
DATA ·edgeMask+80(SB)/8, $0
DATA ·edgeMask+88(SB)/8, $0
GLOBL ·edgeMask(SB), RODATA|NOPTR, $96

#define ADD(X, A, B) \
	VPADDQ X, A, A; \
	VPSRLQ $32, X, X; \
	VPADDQ X, B, B

#define ZERO \
	VPXOR Y0, Y0, Y0; \
	VPXOR Y1, Y1, Y1; \
	VPXOR Y2, Y2, Y2; \
	VPXOR Y3, Y3, Y3; \
	VPXOR Y4, Y4, Y4; \
	VPXOR Y5, Y5, Y5; \
	VPXOR Y6, Y6, Y6; \
	VPXOR Y7, Y7, Y7

#define GATHER \
	VPADDQ Y1, Y0, Y0; \
	VPADDQ Y3, Y2, Y2; \
	VPADDQ Y5, Y4, Y4; \
	VPADDQ Y7, Y6, Y6; \
	VPADDQ Y2, Y0, Y0; \
	VPADDQ Y6, Y4, Y4

// The last 1 to 31 bytes are the end of the last 32, with those before masked
// out. If their number is odd the vector began at an odd offset, and the bytes
// of each word change places.
#define LASTBYTES \
	LEAQ ·edgeMask(SB), DX; \
	VPAND (DX)(CX*1), Y8, Y8; \
	TESTQ $1, CX; \
	JZ even; \
	VPSLLW $8, Y8, Y9; \
	VPSRLW $8, Y8, Y8; \
	VPOR Y9, Y8, Y8; \
even:

// From 64 to 16 bits, and from the order of the machine to that of the network.
#define FOLD \
	MOVL AX, DX; \
	SHRQ $32, AX; \
	ADDL DX, AX; \
	ADCL $0, AX; \
	MOVL AX, DX; \
	SHRL $16, AX; \
	ADDW DX, AX; \
	ADCW $0, AX; \
	ROLW $8, AX

// The total is below 1<<64 for anything that fits in memory.
#define FINISH \
	VPSLLQ $32, Y4, Y1; \
	VPSUBQ Y1, Y0, Y0; \
	VPADDQ Y4, Y0, Y0; \
	VEXTRACTI128 $1, Y0, X1; \
	VPADDQ X1, X0, X0; \
	VPSRLDQ $8, X0, X1; \
	VPADDQ X1, X0, X0; \
	VMOVQ X0, AX; \
	VZEROUPPER; \
	FOLD

// Adds the unsigned words of X to the 32-bit lanes of A: minus 1<<15 they are
// signed, and VPMADDWD adds them in pairs. The load is part of the first
// operation, so that it is three for 32 bytes where ADD and a load are four.
// Y12 holds 0x8000 in each word, Y13 1.
#define WORDS(X, Y, A) \
	VPXOR X, Y12, Y; \
	VPMADDWD Y13, Y, Y; \
	VPADDD Y, A, A

// func sumAVX2(src *byte, n int) uint16
//
// A lane grows by at most 1<<16 for 128 bytes: n is at most sumMax.
TEXT ·sumAVX2(SB), NOSPLIT, $0-18
	MOVQ src+0(FP), SI
	MOVQ n+8(FP), CX

	// What the words lack: 16 times 1<<15 for each vector, the last included.
	MOVQ CX, BX
	ADDQ $31, BX
	SHRQ $5, BX
	SHLQ $19, BX
	VPCMPEQW Y13, Y13, Y13
	VPSLLW $15, Y13, Y12
	VPSRLW $15, Y13, Y13
	VPXOR Y0, Y0, Y0
	SUBQ $128, CX
	JB   rest
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3

loop:
	WORDS((SI), Y8, Y0)
	WORDS(32(SI), Y9, Y1)
	WORDS(64(SI), Y10, Y2)
	WORDS(96(SI), Y11, Y3)
	ADDQ $128, SI
	SUBQ $128, CX
	JAE  loop
	VPADDD Y1, Y0, Y0
	VPADDD Y3, Y2, Y2
	VPADDD Y2, Y0, Y0

rest:
	ADDQ $128, CX

small:
	CMPQ CX, $32
	JB   last
	WORDS((SI), Y8, Y0)
	ADDQ $32, SI
	SUBQ $32, CX
	JMP  small

last:
	TESTQ CX, CX
	JZ    done
	VMOVDQU -32(SI)(CX*1), Y8
	LASTBYTES
	WORDS(Y8, Y8, Y0)

done:
	VEXTRACTI128 $1, Y0, X1
	VPMOVSXDQ X0, Y0
	VPMOVSXDQ X1, Y1
	VPADDQ Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDQ X1, X0, X0
	VPSRLDQ $8, X0, X1
	VPADDQ X1, X0, X0
	VMOVQ X0, AX
	VZEROUPPER
	ADDQ BX, AX
	FOLD
	MOVW AX, ret+16(FP)
	RET

// func copySumAVX2(dst, src *byte, n int) uint16
TEXT ·copySumAVX2(SB), NOSPLIT, $0-26
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	ZERO
	CMPQ CX, $192
	JB   go

	// Stores that cross a cache line are dear: begin with the bytes up to the
	// next multiple of 32 in dst, unless their number is odd.
	MOVQ DI, BX
	NEGQ BX
	ANDQ $31, BX
	TESTQ $1, BX
	JNZ  go
	VMOVDQU (SI), Y8
	VMOVDQU Y8, (DI)
	LEAQ ·edgeMask+64(SB), DX
	SUBQ BX, DX
	VPAND (DX), Y8, Y8
	ADD(Y8, Y0, Y4)
	ADDQ BX, SI
	ADDQ BX, DI
	SUBQ BX, CX

go:
	SUBQ $128, CX
	JB   rest

loop:
	VMOVDQU (SI), Y8
	VMOVDQU 32(SI), Y9
	VMOVDQU 64(SI), Y10
	VMOVDQU 96(SI), Y11
	VMOVDQU Y8, (DI)
	VMOVDQU Y9, 32(DI)
	VMOVDQU Y10, 64(DI)
	VMOVDQU Y11, 96(DI)
	ADD(Y8, Y0, Y4)
	ADD(Y9, Y1, Y5)
	ADD(Y10, Y2, Y6)
	ADD(Y11, Y3, Y7)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $128, CX
	JAE  loop
	GATHER

rest:
	ADDQ $128, CX

small:
	CMPQ CX, $32
	JB   last
	VMOVDQU (SI), Y8
	VMOVDQU Y8, (DI)
	ADD(Y8, Y0, Y4)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $32, CX
	JMP  small

last:
	TESTQ CX, CX
	JZ    done
	VMOVDQU -32(SI)(CX*1), Y8
	VMOVDQU Y8, -32(DI)(CX*1)
	LASTBYTES
	ADD(Y8, Y0, Y4)

done:
	FINISH
	MOVW AX, ret+24(FP)
	RET

#define GATHER512 \
	VPADDQ Z1, Z0, Z0; \
	VPADDQ Z3, Z2, Z2; \
	VPADDQ Z5, Z4, Z4; \
	VPADDQ Z7, Z6, Z6; \
	VPADDQ Z2, Z0, Z0; \
	VPADDQ Z6, Z4, Z4

// A mask of the CX lowest bytes, CX below 64.
#define MASK512 \
	MOVQ $1, AX; \
	SHLQ CX, AX; \
	DECQ AX; \
	KMOVQ AX, K1

#define FINISH512 \
	VPSLLQ $32, Z4, Z1; \
	VPSUBQ Z1, Z0, Z0; \
	VPADDQ Z4, Z0, Z0; \
	VEXTRACTI64X4 $1, Z0, Y1; \
	VPADDQ Y1, Y0, Y0; \
	VEXTRACTI128 $1, Y0, X1; \
	VPADDQ X1, X0, X0; \
	VPSRLDQ $8, X0, X1; \
	VPADDQ X1, X0, X0; \
	VMOVQ X0, AX; \
	VZEROUPPER; \
	FOLD

// func sumAVX512(src *byte, n int) uint16
TEXT ·sumAVX512(SB), NOSPLIT, $0-18
	MOVQ src+0(FP), SI
	MOVQ n+8(FP), CX
	ZERO
	SUBQ $256, CX
	JB   rest

loop:
	VMOVDQU64 (SI), Z8
	VMOVDQU64 64(SI), Z9
	VMOVDQU64 128(SI), Z10
	VMOVDQU64 192(SI), Z11
	ADD(Z8, Z0, Z4)
	ADD(Z9, Z1, Z5)
	ADD(Z10, Z2, Z6)
	ADD(Z11, Z3, Z7)
	ADDQ $256, SI
	SUBQ $256, CX
	JAE  loop
	GATHER512

rest:
	ADDQ $256, CX

small:
	CMPQ CX, $64
	JB   last
	VMOVDQU64 (SI), Z8
	ADD(Z8, Z0, Z4)
	ADDQ $64, SI
	SUBQ $64, CX
	JMP  small

last:
	TESTQ CX, CX
	JZ    done
	MASK512
	VMOVDQU8.Z (SI), K1, Z8
	ADD(Z8, Z0, Z4)

done:
	FINISH512
	MOVW AX, ret+16(FP)
	RET

// func copySumAVX512(dst, src *byte, n int) uint16
TEXT ·copySumAVX512(SB), NOSPLIT, $0-26
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	ZERO
	CMPQ CX, $384
	JB   go

	// As above, up to a multiple of 64.
	MOVQ DI, BX
	NEGQ BX
	ANDQ $63, BX
	TESTQ $1, BX
	JNZ  go
	MOVQ  $1, AX
	XCHGQ BX, CX
	SHLQ  CX, AX
	XCHGQ BX, CX
	DECQ  AX
	KMOVQ AX, K1
	VMOVDQU8.Z (SI), K1, Z8
	VMOVDQU8 Z8, K1, (DI)
	ADD(Z8, Z0, Z4)
	ADDQ BX, SI
	ADDQ BX, DI
	SUBQ BX, CX

go:
	SUBQ $256, CX
	JB   rest

loop:
	VMOVDQU64 (SI), Z8
	VMOVDQU64 64(SI), Z9
	VMOVDQU64 128(SI), Z10
	VMOVDQU64 192(SI), Z11
	VMOVDQU64 Z8, (DI)
	VMOVDQU64 Z9, 64(DI)
	VMOVDQU64 Z10, 128(DI)
	VMOVDQU64 Z11, 192(DI)
	ADD(Z8, Z0, Z4)
	ADD(Z9, Z1, Z5)
	ADD(Z10, Z2, Z6)
	ADD(Z11, Z3, Z7)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	JAE  loop
	GATHER512

rest:
	ADDQ $256, CX

small:
	CMPQ CX, $64
	JB   last
	VMOVDQU64 (SI), Z8
	VMOVDQU64 Z8, (DI)
	ADD(Z8, Z0, Z4)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $64, CX
	JMP  small

last:
	TESTQ CX, CX
	JZ    done
	MASK512
	VMOVDQU8.Z (SI), K1, Z8
	VMOVDQU8 Z8, K1, (DI)
	ADD(Z8, Z0, Z4)

done:
	FINISH512
	MOVW AX, ret+24(FP)
	RET

// func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL CX, ecx+16(FP)
	MOVL DX, edx+20(FP)
	RET

// func xgetbv() uint32
TEXT ·xgetbv(SB), NOSPLIT, $0-4
	XORL CX, CX
	XGETBV
	MOVL AX, ret+0(FP)
	RET

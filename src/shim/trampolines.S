// The exported functions. Each is one indirect jump through a slot, so that calls keep whatever arguments, and whatever
// ABI's types, they came with. A slot first leads to gapless_shim_resolve, which puts the final target there: after the
// first call the jump is all that gapless costs.
//
// A function that not every MPI library has must not seem to exist where the program's library lacks it, since programs
// test for it by weak reference. Such an MPI_X becomes an indirect function (STT_GNU_IFUNC), whose address the dynamic
// linker asks for at each reference, and gets null for. It is an ordinary function in the file, and turned into an
// indirect one while this library is relocated (gapless_shim_make_indirect): the libraries that a program starts with are
// relocated before, MPI libraries among them refer to their own functions, and the dynamic linker would complain on stderr
// of each such reference to an indirect function in a library that it has yet to relocate. PMPI_X always stays an ordinary
// function: nothing tests for it.

#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

#if defined(__x86_64__)

// Saves the argument registers, calls gapless_shim_resolve(slot, return address), and jumps where it says.
	.text
	.type resolve_and_jump, @function
resolve_and_jump:
	.cfi_startproc
	pushq %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq $192, %rsp
	andq $-16, %rsp
	movq %rdi, 0(%rsp)
	movq %rsi, 8(%rsp)
	movq %rdx, 16(%rsp)
	movq %rcx, 24(%rsp)
	movq %r8, 32(%rsp)
	movq %r9, 40(%rsp)
	movq %rax, 48(%rsp)
	movaps %xmm0, 64(%rsp)
	movaps %xmm1, 80(%rsp)
	movaps %xmm2, 96(%rsp)
	movaps %xmm3, 112(%rsp)
	movaps %xmm4, 128(%rsp)
	movaps %xmm5, 144(%rsp)
	movaps %xmm6, 160(%rsp)
	movaps %xmm7, 176(%rsp)
	movq %r11, %rdi
	movq 8(%rbp), %rsi
	call gapless_shim_resolve
	movq %rax, %r11
	movq 0(%rsp), %rdi
	movq 8(%rsp), %rsi
	movq 16(%rsp), %rdx
	movq 24(%rsp), %rcx
	movq 32(%rsp), %r8
	movq 40(%rsp), %r9
	movq 48(%rsp), %rax
	movaps 64(%rsp), %xmm0
	movaps 80(%rsp), %xmm1
	movaps 96(%rsp), %xmm2
	movaps 112(%rsp), %xmm3
	movaps 128(%rsp), %xmm4
	movaps 144(%rsp), %xmm5
	movaps 160(%rsp), %xmm6
	movaps 176(%rsp), %xmm7
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	jmp *%r11
	.cfi_endproc
	.size resolve_and_jump, . - resolve_and_jump

.macro jump_through_slot name
	_CET_ENDBR
	jmp *slot_\name(%rip)
.endm

.macro first_call name
	_CET_ENDBR
	leaq slot_\name(%rip), %r11
	jmp resolve_and_jump
.endm

.macro address_if_available name
	_CET_ENDBR
	leaq name_\name(%rip), %rdi
	leaq trampoline_\name(%rip), %rsi
	jmp gapless_shim_if_available
.endm

.macro run_and_return function
	_CET_ENDBR
	jmp \function
.endm

#elif defined(__aarch64__)

	.text
	.type resolve_and_jump, %function
resolve_and_jump:
	.cfi_startproc
	stp x29, x30, [sp, #-224]!
	.cfi_def_cfa_offset 224
	.cfi_offset 29, -224
	.cfi_offset 30, -216
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	str x8, [sp, #80]
	stp q0, q1, [sp, #96]
	stp q2, q3, [sp, #128]
	stp q4, q5, [sp, #160]
	stp q6, q7, [sp, #192]
	mov x0, x16
	mov x1, x30
	bl gapless_shim_resolve
	mov x16, x0
	ldp x0, x1, [sp, #16]
	ldp x2, x3, [sp, #32]
	ldp x4, x5, [sp, #48]
	ldp x6, x7, [sp, #64]
	ldr x8, [sp, #80]
	ldp q0, q1, [sp, #96]
	ldp q2, q3, [sp, #128]
	ldp q4, q5, [sp, #160]
	ldp q6, q7, [sp, #192]
	ldp x29, x30, [sp], #224
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	br x16
	.cfi_endproc
	.size resolve_and_jump, . - resolve_and_jump

// hint #34 is "bti c", a valid target for indirect calls and for jumps through x16.
.macro jump_through_slot name
	hint #34
	adrp x16, slot_\name
	ldr x16, [x16, #:lo12:slot_\name]
	br x16
.endm

.macro first_call name
	hint #34
	adrp x16, slot_\name
	add x16, x16, #:lo12:slot_\name
	b resolve_and_jump
.endm

.macro address_if_available name
	hint #34
	adrp x0, name_\name
	add x0, x0, #:lo12:name_\name
	adrp x1, trampoline_\name
	add x1, x1, #:lo12:trampoline_\name
	b gapless_shim_if_available
.endm

.macro run_and_return function
	hint #34
	b \function
.endm

#else
#error "no trampolines for this processor"
#endif

// The exported function, in the current section.
.macro trampoline name
	.balign 16
	.globl \name
	.type \name, %function
\name:
trampoline_\name:
	.cfi_startproc
	jump_through_slot \name
	.cfi_endproc
	.size \name, . - \name
.endm

.macro slot name
	.data
slot_\name:
	.quad first_call_\name
	.text
	.type first_call_\name, %function
first_call_\name:
	.cfi_startproc
	first_call \name
	.cfi_endproc
	.size first_call_\name, . - first_call_\name
.endm

.macro export_always name
	.text
	trampoline \name
	slot \name
.endm

// What makes it an indirect function stands 16 bytes after the trampoline, as gapless_shim_make_indirect expects.
.macro export_if_available name
	.section .text.optional, "ax", %progbits
	trampoline \name
	.balign 16
	.cfi_startproc
	address_if_available \name
	.cfi_endproc
	.section .rodata
name_\name:
	.asciz "\name"
	slot \name
.endm

	.section .text.optional, "ax", %progbits
	.balign 16
	.globl gapless_shim_optional_begin
	.hidden gapless_shim_optional_begin
gapless_shim_optional_begin:

// An indirect function of our own, whose address the dynamic linker therefore asks for when it relocates this library.
	.text
	.type relocation_time, %gnu_indirect_function
relocation_time:
	.cfi_startproc
	run_and_return gapless_shim_make_indirect
	.cfi_endproc
	.size relocation_time, . - relocation_time
	.section .data.rel.ro, "aw", %progbits
	.balign 8
	.quad relocation_time

// One pair of slots a function, in the order of the table, as gapless::shim::Slots has them.
	.data
	.balign 8
	.globl gapless_shim_slots
	.hidden gapless_shim_slots
gapless_shim_slots:

#define EXPORT_mpi_3_0 export_always
#define EXPORT_mpi_3_1 export_if_available
#define EXPORT_mpi_4_0 export_if_available
#define EXPORT_mpi_4_1 export_if_available
#define EXPORT_mpi_5_0 export_if_available
#define EXPORT_large_count export_if_available
#define EXPORT_passed(name, since)
#define EXPORT_intercepted(name, since) EXPORT_##since MPI_##name; export_always PMPI_##name;
#define EXPORT_guarded(name, since) EXPORT_intercepted(name, since)
#define EXPORT_waiting(name, since) EXPORT_intercepted(name, since)
#define EXPORT_endpoints(name, since) EXPORT_intercepted(name, since)
#define GAPLESS_FUNCTION(name, mark, since, roles) EXPORT_##mark(name, since)
#include "mpi/table/functions.def"
#define GAPLESS_EXTENSION(name, ...) export_if_available MPIX_##name; export_if_available PMPIX_##name;
#include "mpi/table/extensions.def"
#define GAPLESS_ADDITION(name) export_always MPIX_##name; export_always PMPIX_##name;
#define GAPLESS_FORTRAN_ADDITION(name) export_always mpix_##name; export_always pmpix_##name;
#include "mpi/table/additions.def"

	.section .text.optional, "ax", %progbits
	.globl gapless_shim_optional_end
	.hidden gapless_shim_optional_end
gapless_shim_optional_end:

	.section .note.GNU-stack, "", %progbits

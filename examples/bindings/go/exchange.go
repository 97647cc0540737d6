// An exchange between two streams in Go, with its proof: y = 2 x + 1. Build and run: docs/ffi.md
//
// A producer fills x on its stream and hands over the entries of a dictionary. The consumer checks them, works on a
// stream of its own, and releases x at once. The owner, in Go, frees x in the order of the producer's stream. The
// same runs again with one wait left out: the numbers are still right, and the race detector names the race.
package main

// #cgo LDFLAGS: -lcai -lcai_sim
// #define CAI_SHARED
// #include "cai_emm.h"
// #include "cai_check.h"
// #include <stdlib.h>
// void release_go(cai_array *array);
// void fill_go(void *x);
// void scale_go(void *arrays);
// typedef struct world { /* C keeps pointers to these, so they are not in Go's memory */
//     cai_array x, y, *io[1];
//     cai_event_pool pool; cai_emm_hooks hooks; cai_exchange exchange;
//     cai_interface entries; cai_token tokens[9]; cai_error err; void *pointer;
// } world;
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"runtime/cgo"
	"unsafe"
)

const n, bytes = 6, 4 * 6 // elements and bytes of x and of y

var x, fill, scale, wait = C.CString("x"), C.CString("fill"), C.CString("scale"), C.CString("stream_wait_event")

func failed(w *C.world, status C.cai_status) bool {
	if status != C.CAI_OK {
		fmt.Println(C.GoString(C.cai_status_name(status)) + ": " + C.GoString(&w.err.message[0]))
	}
	return status != C.CAI_OK
}

func must(w *C.world, status C.cai_status) { // an error ends this program
	if failed(w, status) {
		os.Exit(1)
	}
}

// Runs once, on any thread, in any call of libcai. A panic in it ends the program.
//
//export release_go
func release_go(array *C.cai_array) {
	array.release = nil
	owner := cgo.Handle(*(*C.uintptr_t)(array.owner))
	owner.Value().(func())()
	owner.Delete()
	C.free(array.owner)
}

func floats(address C.uint64_t) *[n]float32 { return *(**[n]float32)(unsafe.Pointer(&address)) }

// Two kernels. The simulation calls them when their turn on the stream comes.
//
//export fill_go
func fill_go(x unsafe.Pointer) { *(*[n]float32)(x) = [n]float32{0, 1, 2, 3, 4, 5} }

//export scale_go
func scale_go(arrays unsafe.Pointer) {
	w := (*C.world)(arrays)
	for i, value := range floats(w.x.data) {
		floats(w.y.data)[i] = 2*value + 1
	}
}

// Queues a kernel that reads `from` and writes `to`.
func launch(sim *C.cai_sim, w *C.world, s C.uint64_t, name *C.char, kernel, argument unsafe.Pointer,
	from, to C.uint64_t) C.cai_status {
	rows := [2]C.cai_sim_access{{address: from, bytes: bytes}, {address: to, bytes: bytes, write: 1}}
	return C.cai_cuda_status(C.cai_sim_launch(sim, s, name, (*[0]byte)(kernel), argument, &rows[0], 2), name, &w.err)
}

// {'shape': (2, 3), 'typestr': '<f4', 'data': (address, False), 'version': 3, 'stream': stream}
func importX(w *C.world, address, stream C.uint64_t) {
	t, e := &w.tokens, &w.entries
	pair := C.cai_token{kind: C.CAI_TOKEN_TUPLE, length: 2}
	number := func(value C.uint64_t) C.cai_token { return C.cai_token{kind: C.CAI_TOKEN_INT, number: value} }
	t[0], t[1], t[2] = pair, number(2), number(3)
	t[3], t[4], t[5] = pair, number(address), C.cai_token{kind: C.CAI_TOKEN_BOOL}
	t[6], t[7], t[8] = C.cai_token{kind: C.CAI_TOKEN_STR, length: 3, text: C.CString("<f4")}, number(3), number(stream)
	e.shape, e.data, e.typestr, e.version, e.stream = &t[0], &t[3], &t[6], &t[7], &t[8]
	must(w, C.cai_import(e, nil, &w.x, &w.err))
}

func produce(sim *C.cai_sim, w *C.world, stream C.uint64_t) {
	must(w, C.cai_emm_alloc(&w.pointer, &w.hooks, bytes, stream, &w.err))
	address := C.uint64_t(uintptr(w.pointer))
	must(w, launch(sim, w, stream, fill, C.fill_go, w.pointer, address, address))
	importX(w, address, stream)
	owner := (*C.uintptr_t)(C.malloc(C.sizeof_uintptr_t)) // C may keep no pointer of Go, but a handle
	*owner = C.uintptr_t(cgo.NewHandle(func() {           // frees in the order of the stream
		fmt.Println("released by Go, status", C.cai_emm_free(&w.hooks, w.pointer, bytes, stream, nil))
	}))
	C.cai_array_own(&w.x, (*[0]byte)(C.release_go), unsafe.Pointer(owner))
	w.x.flags |= C.CAI_ORDERED_FREE // it is freed in the order of the stream that it names
}

func consume(sim *C.cai_sim, w *C.world, s C.uint64_t) {
	failed(w, C.cai_expect(&w.x, x, C.CAI_FLOAT64, 1, C.CAI_ON_DEVICE, &w.err)) // not what x is
	must(w, C.cai_expect(&w.x, x, C.CAI_FLOAT32, 2, C.CAI_ON_DEVICE, &w.err))
	w.io[0] = &w.x
	must(w, C.cai_exchange_begin(&w.exchange, &w.pool, &w.io[0], 1, s, &w.err))
	work := launch(sim, w, s, scale, C.scale_go, unsafe.Pointer(w), w.x.data, w.y.data)
	must(w, C.cai_exchange_finish(&w.exchange, work, &w.io[0], 1, &w.err))
}

func exchange(sim *C.cai_sim, w *C.world) [n]float32 {
	producer, consumer := C.cai_sim_stream_create(sim, 1), C.cai_sim_stream_create(sim, 1)
	must(w, C.cai_event_pool_init(&w.pool, C.cai_sim_cuda(sim), nil, 0, 0, &w.err))
	must(w, C.cai_emm_hooks_async(&w.hooks, C.cai_sim_cuda(sim), nil, &w.err)) // CUDA's own pool: one thread
	produce(sim, w, producer)
	shape := [2]C.int64_t{2, 3}
	must(w, C.cai_emm_array(&w.y, &w.pool, &w.hooks, C.CAI_FLOAT32, 2, &shape[0], consumer, &w.err))
	consume(sim, w, consumer)
	C.cai_sim_run(sim) // the device does its work, here in the order of the calls
	y := *floats(w.y.data)
	C.cai_array_release(&w.y)
	C.cai_sim_run(sim)
	must(w, C.cai_event_pool_destroy(&w.pool, &w.err))
	C.cai_sim_stream_destroy(sim, producer)
	C.cai_sim_stream_destroy(sim, consumer)
	return y
}

func main() {
	runtime.LockOSThread() // CUDA's current context is that of a thread
	for omit := C.int32_t(0); omit < 3; omit++ {
		sim, w, race := C.cai_sim_create(1), (*C.world)(C.calloc(1, C.sizeof_world)), C.cai_check_race{}
		C.cai_sim_set_context(sim, C.cai_sim_primary(sim, 0))
		C.cai_sim_omit_op(sim, wait, omit) // 0: none
		y := exchange(sim, w)
		races, leaks := C.cai_check_races(sim, &race, 1), C.cai_sim_leaks(sim, nil, 0)
		fmt.Printf("wait left out: %d; y %v, races %d, leaks %d\n", omit, y, races, leaks)
		if races > 0 {
			var text [C.CAI_CHECK_TEXT]C.char
			C.cai_check_race_text(sim, &race, &text[0])
			fmt.Println("    " + C.GoString(&text[0]))
		}
		C.cai_sim_destroy(sim)
		C.free(unsafe.Pointer(w))
	}
}

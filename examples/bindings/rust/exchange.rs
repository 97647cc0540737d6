// An exchange between two streams in Rust, with its proof: y = 2 x + 1. Build and run: docs/ffi.md
//
// A producer fills x on its stream and hands over the entries of a dictionary. The consumer checks them, works on a
// stream of its own, and releases x at once. The owner, in Rust, frees x in the order of the producer's stream. The
// same runs again with one wait left out: the numbers are still right, and the race detector names the race.

mod cai_abi;
mod cai_sim_abi;
use cai_abi::*;
use cai_sim_abi::*;
use std::ffi::{CStr, CString};
use std::mem::zeroed;
use std::os::raw::{c_char, c_void};
use std::ptr::{null, null_mut};

const N: usize = 6; // elements of x and of y
const BYTES: usize = 4 * N;

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn text(at: *const c_char) -> String {
    unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
}

/// Calls a function whose last parameter is the error. Err has the status and the message.
fn call(function: impl FnOnce(*mut cai_error) -> i32) -> Result<(), String> {
    let mut error: cai_error = unsafe { zeroed() };
    match function(&mut error) {
        0 => Ok(()),
        status => Err(format!("{}: {}", text(unsafe { cai_status_name(status) }), text(error.message.as_ptr()))),
    }
}

/// What the producer owns: memory of a table of hooks, freed in the order of a stream.
struct Memory {
    hooks: *const cai_emm_hooks,
    pointer: *mut c_void,
    stream: u64,
}

impl Drop for Memory {
    fn drop(&mut self) {
        let status = unsafe { cai_emm_free(self.hooks, self.pointer, BYTES, self.stream, null_mut()) };
        println!("released by Rust, status {}", status);
    }
}

/// Runs once, on any thread, in any call of libcai. A panic must not leave it: compile with panic=abort.
unsafe extern "C" fn release(array: *mut cai_array) {
    (*array).release = None;
    drop(Box::from_raw((*array).owner as *mut Memory));
}

/// {'shape': (2, 3), 'typestr': '<f4', 'data': (address, False), 'version': 3, 'stream': stream}
fn import(address: u64, stream: u64, x: &mut cai_array) -> Result<(), String> {
    let token = |kind, length, number, text| cai_token { kind, length, number, text };
    let int = |number| token(CAI_TOKEN_INT, 0, number, null());
    let pair = token(CAI_TOKEN_TUPLE, 2, 0, null());
    let shape = [pair, int(2), int(3)];
    let typestr = token(CAI_TOKEN_STR, 3, 0, b"<f4".as_ptr() as *const c_char);
    let data = [pair, int(address), token(CAI_TOKEN_BOOL, 0, 0, null())];
    let (version, stream) = (int(3), int(stream));
    let mut entries: cai_interface = unsafe { zeroed() };
    (entries.shape, entries.typestr, entries.data) = (shape.as_ptr(), &typestr, data.as_ptr());
    (entries.version, entries.stream) = (&version, &stream);
    call(|err| unsafe { cai_import(&entries, null(), x, err) })
}

/// Two kernels. The simulation calls them when their turn on the stream comes.
unsafe extern "C" fn fill(x: *mut c_void) {
    std::slice::from_raw_parts_mut(x as *mut f32, N).iter_mut().zip(0u8..).for_each(|(x, i)| *x = i.into());
}

unsafe extern "C" fn scale(arguments: *mut c_void) {
    let (x, y) = *Box::from_raw(arguments as *mut (*const f32, *mut f32));
    (0..N).for_each(|i| *y.add(i) = 2.0 * *x.add(i) + 1.0);
}

type Kernel = unsafe extern "C" fn(*mut c_void);

/// Queues a kernel. `rows` are (address, 1 if it writes).
unsafe fn launch(sim: *mut c_void, s: u64, name: &str, kernel: Kernel, arguments: *mut c_void, rows: &[(u64, i32)])
                 -> Result<(), String> {
    let row = |&(address, write)| cai_sim_access { address, bytes: BYTES as u64, write, memory: 0 };
    let rows: Vec<_> = rows.iter().map(row).collect();
    let count = rows.len() as i32;
    let error = cai_sim_launch(sim, s, c(name).as_ptr(), Some(kernel), arguments, rows.as_ptr(), count);
    call(|err| cai_cuda_status(error, c(name).as_ptr(), err))
}

unsafe fn consume(sim: *mut c_void, pool: *mut cai_event_pool, x: &mut cai_array, y: &cai_array, s: u64)
                  -> Result<(), String> {
    call(|err| cai_expect(x, c("x").as_ptr(), CAI_FLOAT32, 2, CAI_ON_DEVICE as u32, err))?;
    let (rows, io) = ([(x.data, 0), (y.data, 1)], [x as *mut cai_array]);
    let mut exchange: cai_exchange = zeroed();
    call(|err| cai_exchange_begin(&mut exchange, pool, io.as_ptr(), 1, s, err))?;
    let arguments = Box::into_raw(Box::new((x.data as *const f32, y.data as *mut f32)));
    let work = launch(sim, s, "scale", scale, arguments as *mut c_void, &rows);
    let status = if work.is_ok() { CAI_OK } else { CAI_ERR_CUDA };
    work.and(call(|err| cai_exchange_finish(&mut exchange, status, io.as_ptr(), 1, err))) // also if the work failed
}

/// Returns y.
unsafe fn exchange(sim: *mut c_void) -> Result<Vec<i32>, String> {
    let (cuda, mut pointer) = (cai_sim_cuda(sim), null_mut());
    let (producer, consumer) = (cai_sim_stream_create(sim, 1), cai_sim_stream_create(sim, 1));
    let (mut x, mut y, mut hooks): (cai_array, cai_array, cai_emm_hooks) = (zeroed(), zeroed(), zeroed());
    let mut pool: Box<cai_event_pool> = Box::new(zeroed()); // it must not move
    call(|err| cai_event_pool_init(&mut *pool, cuda, null_mut(), 0, 0, err))?;
    call(|err| cai_emm_hooks_async(&mut hooks, cuda, null_mut(), err))?; // CUDA's own pool: there is one thread
    call(|err| cai_emm_alloc(&mut pointer, &hooks, BYTES, producer, err))?;
    let memory = Box::new(Memory { hooks: &hooks, pointer, stream: producer });
    launch(sim, producer, "fill", fill, pointer, &[(pointer as u64, 1)])?;
    import(pointer as u64, producer, &mut x)?;
    cai_array_own(&mut x, Some(release), Box::into_raw(memory) as *mut c_void);
    x.flags |= CAI_ORDERED_FREE as u32; // it is freed in the order of the stream that it names
    call(|err| cai_emm_array(&mut y, &mut *pool, &hooks, CAI_FLOAT32, 2, [2, 3].as_ptr(), consumer, err))?;
    let wrong = call(|err| cai_expect(&x, c("x").as_ptr(), CAI_FLOAT64, 1, CAI_ON_DEVICE as u32, err));
    println!("{}", wrong.unwrap_err());
    consume(sim, &mut *pool, &mut x, &y, consumer)?;
    cai_sim_run(sim); // the device does its work, here in the order of the calls
    let numbers = (0..N).map(|i| *(y.data as *const f32).add(i) as i32).collect();
    cai_array_release(&mut y);
    cai_sim_run(sim);
    call(|err| cai_event_pool_destroy(&mut *pool, err))?;
    let closed = cai_sim_stream_destroy(sim, producer) + cai_sim_stream_destroy(sim, consumer);
    call(|err| cai_cuda_status(closed, c("stream_destroy").as_ptr(), err)).map(|()| numbers)
}

fn main() -> Result<(), String> {
    assert_eq!(unsafe { cai_version() }, CAI_H_INCLUDED);
    assert_eq!((cai_abi::layout_fault(), cai_sim_abi::layout_fault()), ("", ""));
    for omit in 0..3 {
        let (sim, mut race, mut line) = unsafe { (cai_sim_create(1), zeroed(), [0; CAI_CHECK_TEXT as usize]) };
        unsafe { cai_sim_set_context(sim, cai_sim_primary(sim, 0)) };
        unsafe { cai_sim_omit_op(sim, c("stream_wait_event").as_ptr(), omit) }; // 0: none
        let y = unsafe { exchange(sim) }?;
        let (races, leaks) = unsafe { (cai_check_races(sim, &mut race, 1), cai_sim_leaks(sim, null_mut(), 0)) };
        let y = format!("{:?}", y).replace(',', "");
        println!("wait left out: {}; y {}, races {}, leaks {}", omit, y, races, leaks);
        if races > 0 {
            unsafe { cai_check_race_text(sim, &race, line.as_mut_ptr()) };
            println!("    {}", text(line.as_ptr()));
        }
        unsafe { cai_sim_destroy(sim) };
    }
    Ok(())
}

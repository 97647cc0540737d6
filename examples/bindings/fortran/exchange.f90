! An exchange between two streams in Fortran, with its proof: y = 2 x + 1. Build and run: docs/ffi.md
!
! A producer fills x on its stream and hands over the entries of a dictionary. The consumer checks them, works on a
! stream of its own, and releases x at once. The owner, in Fortran, frees x in the order of the producer's stream.
! The same runs again with one wait left out: the numbers are still right, and the race detector names the race.
module world
  use libcai
  use libcai_sim
  implicit none
  integer, parameter :: n = 6                       ! elements of x and of y
  integer(c_int64_t), parameter :: bytes = 4 * n
  character(kind=c_char), parameter :: nul = c_null_char
  type :: memory                                    ! what the producer owns
    type(c_ptr) :: pointer
    integer(c_int64_t) :: stream
  end type
  ! C keeps pointers to these: they are targets, and in a module they stay where they are.
  type(cai_array), target :: x, y
  type(cai_event_pool), target :: pool
  type(cai_emm_hooks), target :: hooks

contains

  ! Runs once, on any thread, in any call of libcai. The memory is freed in the order of its stream.
  subroutine release(array) bind(c, name="")
    type(cai_array), intent(inout) :: array
    type(memory), pointer :: owner
    array%release = c_null_funptr
    call c_f_pointer(array%owner, owner)
    print '(a,i0)', "released by Fortran, status ", cai_emm_free(hooks, owner%pointer, bytes, owner%stream)
    deallocate (owner)
  end subroutine

  ! Two kernels. The simulation calls them when their turn on the stream comes.
  subroutine fill(argument) bind(c, name="")
    type(c_ptr), value :: argument
    real(c_float), pointer :: to(:)
    integer :: i
    call c_f_pointer(argument, to, [n])
    to = [(real(i, c_float), i = 0, n - 1)]
  end subroutine

  subroutine scale(argument) bind(c, name="")
    type(c_ptr), value :: argument                  ! that of y
    real(c_float), pointer :: from(:), to(:)
    call c_f_pointer(transfer(x%data, c_null_ptr), from, [n])
    call c_f_pointer(argument, to, [n])
    to = 2 * from + 1
  end subroutine
end module

program exchange
  use world
  implicit none
  integer(c_int64_t) :: producer, consumer
  integer(c_int32_t) :: omit, closed, races
  real(c_float), pointer :: numbers(:)
  type(cai_error), target :: err
  type(cai_check_race) :: race(1)
  character(kind=c_char), target :: line(CAI_CHECK_TEXT)
  type(c_ptr) :: sim

  if (cai_version() /= CAI_H_INCLUDED) error stop "another version of libcai"
  if (cai_layout_fault() // cai_sim_layout_fault() /= "") error stop cai_layout_fault() // cai_sim_layout_fault()
  do omit = 0, 2
    sim = cai_sim_create(1)
    closed = cai_sim_set_context(sim, cai_sim_primary(sim, 0))
    closed = cai_sim_omit_op(sim, "stream_wait_event" // nul, omit)  ! 0: none
    producer = cai_sim_stream_create(sim, 1)
    consumer = cai_sim_stream_create(sim, 1)
    call must(cai_event_pool_init(pool, cai_sim_cuda(sim), capacity=0, flags=0, err=err))
    call must(cai_emm_hooks_async(hooks, cai_sim_cuda(sim), err=err))  ! CUDA's own pool: there is one thread
    call produce()
    call must(cai_emm_array(y, pool, hooks, CAI_FLOAT32, 2, [2_8, 3_8], consumer, err))
    call consume()
    closed = cai_sim_run(sim)                       ! the device does its work, in the order of the calls
    call c_f_pointer(transfer(y%data, c_null_ptr), numbers, [n])
    write (*, '(a,i0,a,5(i0," "),i0,a)', advance="no") "wait left out: ", omit, "; y [", int(numbers), "]"
    call cai_array_release(y)
    closed = cai_sim_run(sim)
    call must(cai_event_pool_destroy(pool, err))
    closed = cai_sim_stream_destroy(sim, producer) + cai_sim_stream_destroy(sim, consumer)
    races = cai_check_races(sim, race, 1)
    print '(a,i0,a,i0)', ", races ", races, ", leaks ", cai_sim_leaks(sim, capacity=0_8)
    if (races > 0) then
      call cai_check_race_text(sim, race(1), line)
      print '(a)', "    " // cai_string(c_loc(line))
    end if
    call cai_sim_destroy(sim)
  end do

contains

  subroutine say(status)
    integer(c_int32_t), intent(in) :: status
    print '(a)', cai_string(cai_status_name(status)) // ": " // cai_string(c_loc(err%message))
  end subroutine

  subroutine must(status)                           ! an error ends this program
    integer(c_int32_t), intent(in) :: status
    if (status == CAI_OK) return
    call say(status)
    error stop
  end subroutine

  integer(c_int32_t) function launch(stream, name, kernel, argument, from, to)
    integer(c_int64_t), intent(in) :: stream, from, to
    character(len=*), intent(in) :: name
    type(c_funptr), value :: kernel
    type(c_ptr), value :: argument
    launch = cai_sim_launch(sim, stream, name // nul, kernel, argument, &
                            [cai_sim_access(from, bytes, 0, 0), cai_sim_access(to, bytes, 1, 0)], 2)
    launch = cai_cuda_status(launch, name // nul, err)
  end function

  ! x as another library gets it: {'shape': (2, 3), 'typestr': '<f4', 'data': (address, False), 'version': 3,
  subroutine produce()                              ! 'stream': producer}, and an owner
    type(memory), pointer :: owner
    character(kind=c_char), target :: typestr(3) = ["<", "f", "4"]
    type(cai_token), target :: t(9)
    type(cai_interface) :: entries
    allocate (owner)
    owner%stream = producer
    call must(cai_emm_alloc(owner%pointer, hooks, bytes, producer, err))
    t%kind = [CAI_TOKEN_TUPLE, CAI_TOKEN_INT, CAI_TOKEN_INT, CAI_TOKEN_TUPLE, CAI_TOKEN_INT, CAI_TOKEN_BOOL, &
              CAI_TOKEN_STR, CAI_TOKEN_INT, CAI_TOKEN_INT]
    t%length = [2, 0, 0, 2, 0, 0, 3, 0, 0]
    t%number = [0_8, 2_8, 3_8, 0_8, transfer(owner%pointer, 0_8), 0_8, 0_8, 3_8, producer]
    t(7)%text = c_loc(typestr)
    entries = cai_interface(c_loc(t(1)), c_loc(t(7)), c_loc(t(4)), c_loc(t(8)), c_null_ptr, c_loc(t(9)), &
                            c_null_ptr, c_null_ptr, c_null_ptr)
    call must(cai_import(entries, out=x, err=err))  ! options are left out: NULL
    call must(launch(producer, "fill", c_funloc(fill), owner%pointer, x%data, x%data))
    call cai_array_own(x, c_funloc(release), c_loc(owner))
    x%flags = ior(x%flags, CAI_ORDERED_FREE)  ! it is freed in the order of the stream that it names
  end subroutine

  subroutine consume()
    type(cai_exchange) :: ex
    type(c_ptr) :: io(1)
    call say(cai_expect(x, "x" // nul, CAI_FLOAT64, 1, CAI_ON_DEVICE, err))  ! not what x is
    call must(cai_expect(x, "x" // nul, CAI_FLOAT32, 2, CAI_ON_DEVICE, err))
    io(1) = c_loc(x)
    call must(cai_exchange_begin(ex, pool, io, 1, consumer, err))
    call must(cai_exchange_finish(ex, launch(consumer, "scale", c_funloc(scale), transfer(y%data, c_null_ptr), &
                                             x%data, y%data), io, 1, err))
  end subroutine
end program

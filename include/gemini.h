/**
 * @file gemini.h
 * The C interface of libgemini: training of networks whose parameters, gradients and optimizer
 * state do not fit one rank's compute memory.
 *
 * The story in one glance:
 * @code
 *   gemini_create(comm, opts, &ctx);
 *   gemini_param_register(ctx, "w", GEMINI_F32, 2, shape, 0, &w);
 *   gemini_param_init_fill(w, GEMINI_INIT_KAIMING_NORMAL, 1.0, 0.0, seed);
 *   gemini_commit(ctx);                                  // from here on each rank holds its shard
 *   for each step:
 *     gemini_pre_op(ctx, &w, 1);                         // gathers w; gemini_data(w) may be read
 *     ... forward ...
 *     gemini_post_op(ctx, &w, 1);                        // lets it go
 *     gemini_set_phase(ctx, GEMINI_BACKWARD);
 *     gemini_pre_op(ctx, &w, 1);                         // gemini_grad(w) may be written
 *     ... backward ...
 *     gemini_post_op(ctx, &w, 1);                        // reduced over ranks when complete
 *     gemini_step(ctx, NULL);                            // each rank updates its shard
 *   gemini_destroy(&ctx);
 * @endcode
 *
 * Status: 0 did it; > 0 nothing happened and the handle is still good; < 0 the context can only be
 * destroyed. The words are in gemini_last_error_message(). Nothing is printed and nothing aborts.
 *
 * Classes of calls, named in each comment:
 * - Agreed: every rank of the context calls; they check, agree, then act, and return the same sign.
 *   A rank that was fine while another refused returns GEMINI_ERR_REMOTE.
 * - Ordered: every rank calls with the same parameters in the same order, each at its own pace.
 *   A positive status is equal on all ranks (a budget) or a refusal before anything was sent.
 *   Any other failure is negative, and peers get GEMINI_ERR_REMOTE_FATAL at their next wait.
 * - Local: this rank alone.
 *
 * Any Agreed call may also return GEMINI_ERR_REMOTE, GEMINI_ERR_MISMATCH (ranks gave different
 * arguments or a different lr), GEMINI_ERR_ORDER (ranks made different calls), and the negative
 * statuses of a lost peer (GEMINI_ERR_TIMEOUT, GEMINI_ERR_REMOTE_FATAL, GEMINI_ERR_MPI); any call
 * GEMINI_ERR_ARGUMENT for a NULL handle or pointer, GEMINI_ERR_STATE for a context that failed
 * before, after MPI_Finalize or Kokkos::finalize, or from a thread other than the one that
 * initialised MPI where MPI is below MPI_THREAD_MULTIPLE, and GEMINI_ERR_INTERNAL. The comments
 * below name the others.
 *
 * Threads: one thread at a time per context; inside a lease any thread may use the leased memory.
 * Counts are in elements where the name ends in _elems, bytes where it ends in _bytes. Arrays are
 * row-major. Pointers are host pointers unless gemini_on_device says 1.
 */
#ifndef GEMINI_H
#define GEMINI_H

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>
#include <stdint.h>

#include "gemini_version.h"

#if defined(__GNUC__)
#define GEMINI_API __attribute__((visibility("default")))
#else
#define GEMINI_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Result of every call; the sign is a promise, see the head of this file. */
typedef enum {
  GEMINI_SUCCESS = 0,            /**< the call did what it says */
  GEMINI_ERR_ARGUMENT = 1,       /**< NULL, out of range, unknown option or enum */
  GEMINI_ERR_STATE = 2,          /**< not allowed now */
  GEMINI_ERR_OUT_OF_MEMORY = 3,  /**< does not fit the budget or the machine; nothing was moved */
  GEMINI_ERR_UNSUPPORTED = 4,    /**< valid, but not in this build, on this device or for this dtype */
  GEMINI_ERR_DUPLICATE = 5,      /**< name already registered */
  GEMINI_ERR_MISMATCH = 6,       /**< ranks disagree, or a file does not fit the model */
  GEMINI_ERR_IO = 7,             /**< the file system said no, or a file is damaged */
  GEMINI_ERR_REMOTE = 8,         /**< this rank was fine, another was not; nothing changed on either */
  GEMINI_ERR_NOT_FOUND = 9,      /**< nothing at the path, no parameter of that name */
  GEMINI_ERR_INTERNAL = -1,      /**< a defect in the library */
  GEMINI_ERR_MPI = -2,           /**< MPI failed under way */
  GEMINI_ERR_DEVICE = -3,        /**< the device failed, or memory ended, under way */
  GEMINI_ERR_COLLECTIVE = -4,    /**< NCCL failed under way */
  GEMINI_ERR_ORDER = -5,         /**< ranks called different operations */
  GEMINI_ERR_TIMEOUT = -6,       /**< a peer did not arrive within timeout_s */
  GEMINI_ERR_REMOTE_FATAL = -7,  /**< another rank failed or left under way */
  GEMINI_ERR_IO_FATAL = -8,      /**< spilled or half-loaded state cannot be read or written any more */
  GEMINI_ERR_CALLBACK = -9       /**< a callback returned nonzero */
} gemini_status_t;

/** Key-value choices for gemini_create. */
typedef struct gemini_options_s *gemini_options_t;
/** A training context over the ranks of one communicator; several live at once. */
typedef struct gemini_context_s *gemini_context_t;
/** A parameter; belongs to its context and ends with it. */
typedef struct gemini_param_s *gemini_param_t;

/** Element types; the value is the compute type of the operations. Integers: IGNORED parameters only. */
typedef enum {
  GEMINI_F64 = 1, /**< IEEE double */
  GEMINI_F32 = 2, /**< IEEE single */
  GEMINI_F16 = 3, /**< IEEE half */
  GEMINI_BF16 = 4, /**< bfloat16 */
  GEMINI_I32 = 5, /**< int32_t */
  GEMINI_I64 = 6 /**< int64_t */
} gemini_dtype_t;

#define GEMINI_PARAM_FROZEN 1   /**< no gradient, no optimizer state; sharded and moved like the rest */
#define GEMINI_PARAM_RESIDENT 2 /**< always gathered on every rank; optimizer state still sharded */
#define GEMINI_PARAM_IGNORED 4  /**< the caller's own memory: operations pass over it */

/** How gemini_param_init_fill draws; fan_out = shape[0], fan_in = product of the rest (b = 1 swaps). */
typedef enum {
  GEMINI_INIT_ZEROS = 1,          /**< 0 */
  GEMINI_INIT_CONSTANT = 2,       /**< a */
  GEMINI_INIT_UNIFORM = 3,        /**< uniform in [a, b) */
  GEMINI_INIT_NORMAL = 4,         /**< mean a, standard deviation b */
  GEMINI_INIT_XAVIER_UNIFORM = 5, /**< uniform in +-a*sqrt(6/(fan_in+fan_out)); Glorot & Bengio 2010 */
  GEMINI_INIT_KAIMING_NORMAL = 6  /**< sd a/sqrt(fan_in); He et al. 2015, a = sqrt(2) for ReLU */
} gemini_init_t;

/** What the program is doing. */
typedef enum {
  GEMINI_FORWARD = 1,   /**< counts towards gradients that are due */
  GEMINI_BACKWARD = 2,  /**< gradients may be written */
  GEMINI_RECOMPUTE = 3, /**< forward work repeated inside backward; does not count */
  GEMINI_INFERENCE = 4  /**< leaves no trace in what training recorded */
} gemini_phase_t;

/** What a step did. Set with GEMINI_STEP_INFO_INIT. */
typedef struct {
  int64_t struct_size;    /**< [bytes] of this struct, set by the caller */
  int64_t step;           /**< updates applied so far */
  int32_t skipped;        /**< 1: a gradient was not finite on some rank, nothing was updated */
  int32_t params_updated; /**< parameters that some rank produced a gradient for */
  double grad_norm;       /**< global norm before clipping, unscaled */
  double loss_scale;      /**< the one these gradients were made with */
  double lr;              /**< the learning rate used */
} gemini_step_info_t;
#define GEMINI_STEP_INFO_INIT { sizeof(gemini_step_info_t), 0, 0, 0, 0, 0, 0 }

/** What was registered. Set with GEMINI_PARAM_INFO_INIT; pointers are valid until destroy. */
typedef struct {
  int64_t struct_size; /**< [bytes] of this struct, set by the caller */
  const char *name;
  gemini_dtype_t dtype;
  int32_t ndim;
  const int64_t *shape; /**< ndim extents, row-major */
  int32_t flags;        /**< GEMINI_PARAM_* in force */
  int64_t elems;        /**< product of the extents */
} gemini_param_info_t;
#define GEMINI_PARAM_INFO_INIT { sizeof(gemini_param_info_t), 0, GEMINI_F64, 0, 0, 0, 0 }

/** Where this rank stands. Set with GEMINI_TOPOLOGY_INIT. */
typedef struct {
  int64_t struct_size;                     /**< [bytes] of this struct, set by the caller */
  int32_t rank, ranks, node, nodes, node_ranks;
  int32_t shard_group_ranks;               /**< ranks that share one copy of the parameters */
  int32_t replica_groups;                  /**< how many such copies exist */
  int32_t device;                          /**< device number, -1: host */
} gemini_topology_t;
#define GEMINI_TOPOLOGY_INIT { sizeof(gemini_topology_t), 0, 0, 0, 0, 0, 0, 0, 0 }

/** This rank's values; bytes unless named otherwise. "Held" includes slots kept for reuse. */
typedef enum {
  GEMINI_STAT_DEVICE_BYTES = 1,        /**< held in compute memory */
  GEMINI_STAT_DEVICE_PEAK_BYTES = 2,
  GEMINI_STAT_HOST_BYTES = 3,          /**< held in the second tier */
  GEMINI_STAT_HOST_PEAK_BYTES = 4,
  GEMINI_STAT_FILE_BYTES = 5,          /**< held in files */
  GEMINI_STAT_GATHERED_BYTES = 6,      /**< logically gathered copies now */
  GEMINI_STAT_GATHERED_PEAK_BYTES = 7,
  GEMINI_STAT_PARAM_BYTES = 8,         /**< parameter shards, compute copy and master */
  GEMINI_STAT_GRAD_BYTES = 9,          /**< gradient shards */
  GEMINI_STAT_OPTIMIZER_BYTES = 10,    /**< optimizer state shards */
  GEMINI_STAT_NON_MODEL_PEAK_BYTES = 11, /**< workspaces and memory notes */
  GEMINI_STAT_GATHERS = 12,            /**< count of chunk gathers */
  GEMINI_STAT_REDUCES = 13,            /**< count of chunk reductions */
  GEMINI_STAT_GATHER_WIRE_BYTES = 14,  /**< sent by this rank */
  GEMINI_STAT_REDUCE_WIRE_BYTES = 15,  /**< sent by this rank */
  GEMINI_STAT_MOVED_BYTES = 16,        /**< between tiers */
  GEMINI_STAT_PREFETCH_HITS = 17,      /**< count */
  GEMINI_STAT_PREFETCH_MISSES = 18,    /**< count */
  GEMINI_STAT_ORDER_CHANGES = 19,      /**< count */
  GEMINI_STAT_STALL_NS = 20,           /**< [ns] calls waited for communication */
  GEMINI_STAT_STEPS = 21,              /**< count of updates applied */
  GEMINI_STAT_SKIPPED_STEPS = 22,      /**< count */
  GEMINI_STAT_CHUNKS = 23,             /**< count */
  GEMINI_STAT_CHUNK_ELEMS = 24,        /**< [elements] of the largest regular chunk */
  GEMINI_STAT_PADDING_ELEMS = 25,      /**< [elements] in chunks that belong to no parameter */
  GEMINI_STAT_LEASES = 26,             /**< count of open leases */
  GEMINI_STAT_IN_FLIGHT = 27           /**< count of asynchronous works now */
} gemini_stat_t;

/** Fills values of a parameter for row-major indices [first_elem, first_elem + count_elems) in the
 *  parameter's dtype (host memory); must depend on the index alone. Nonzero: stop with ERR_CALLBACK. */
typedef int (*gemini_init_fn)(void *user, int64_t first_elem, int64_t count_elems, void *values);

/** Sees one piece of this rank's shard: host pointers to count_elems values, F64 for F64 parameters and
 *  F32 otherwise. grad: unscaled, NULL when none is held. state1, state2: in the order of the
 *  optimizer's paper (Adam: m, v), NULL where there is none. Nonzero: stop with ERR_CALLBACK. */
typedef int (*gemini_shard_fn)(void *user, gemini_param_t param, int64_t first_elem, int64_t count_elems,
                               void *master, const void *grad, void *state1, void *state2);

/* ---- words ------------------------------------------------------------------------------- */

/** The words of this thread's last failing call: the function, the argument with its value, the
 *  remedy. "" if there was none. Local. Valid until this thread's next call. @since 0.1 */
GEMINI_API const char *gemini_last_error_message(void);
/** "GEMINI_ERR_ARGUMENT" and so on; "unknown status" for other values. Local. Static. @since 0.1 */
GEMINI_API const char *gemini_status_string(gemini_status_t status);
/** The version of the library that was loaded (the header's is in gemini_version.h). Local; any
 *  pointer may be NULL. @since 0.1 */
GEMINI_API gemini_status_t gemini_version(int32_t *major, int32_t *minor, int32_t *patch);
/** Version, compiler, MPI, Kokkos and what is enabled, one line. Local. Static. @since 0.1 */
GEMINI_API const char *gemini_build_info(void);

/* ---- options ----------------------------------------------------------------------------- */

/** Makes an empty set of options: every key at its default. Local. @param[out] opts new handle, owned by
 *  the caller; NULL on failure. @since 0.1 */
GEMINI_API gemini_status_t gemini_options_create(gemini_options_t *opts);
/** Sets one option; the last set wins. Local. Both strings are copied. Keys "user.*" are stored
 *  unchecked for the program. @retval GEMINI_ERR_ARGUMENT unknown key (the nearest names are given) or
 *  a value that is not allowed (what is allowed is given). @since 0.1 */
GEMINI_API gemini_status_t gemini_options_set(gemini_options_t opts, const char *key, const char *value);
/** Sets options from a file of lines "key = value" (# starts a comment). Local. An error changes nothing
 *  and names file:line. @retval GEMINI_ERR_NOT_FOUND nothing at path @retval GEMINI_ERR_IO it cannot be
 *  read @retval GEMINI_ERR_ARGUMENT a line is wrong. @since 0.1 */
GEMINI_API gemini_status_t gemini_options_load(gemini_options_t opts, const char *path);
/** Reads an option as set, or its default. Local. @param[out] value host, capacity bytes, NUL-terminated.
 *  @retval GEMINI_ERR_ARGUMENT unknown key, or capacity too small (the need is told).
 *  @retval GEMINI_ERR_NOT_FOUND a "user." key that was not set. @since 0.1 */
GEMINI_API gemini_status_t gemini_options_get(gemini_options_t opts, const char *key, char *value,
                                              int64_t capacity);
/** Ends the options; sets NULL, accepts NULL. Local. @since 0.1 */
GEMINI_API gemini_status_t gemini_options_destroy(gemini_options_t *opts);

/* ---- context ----------------------------------------------------------------------------- */

/** Makes a context over the ranks of comm. Agreed. @par Blocking until every rank of comm has called.
 *  @param comm intracommunicator; duplicated, the caller keeps its own. @param opts copied; NULL for
 *  defaults; environment variables GEMINI_<KEY> override. @param[out] ctx new handle, NULL on failure.
 *  @retval GEMINI_ERR_ARGUMENT comm is MPI_COMM_NULL or an intercommunicator, a bad environment variable,
 *  options that exclude each other @retval GEMINI_ERR_IO spill_dir or trace_out cannot be written
 *  @retval GEMINI_ERR_STATE MPI is not initialised or already finalised, Kokkos was finalised
 *  @retval GEMINI_ERR_UNSUPPORTED an option asks for what this build does not have
 *  @retval GEMINI_ERR_MISMATCH agreed options differ over ranks. @since 0.1 */
GEMINI_API gemini_status_t gemini_create(MPI_Comm comm, gemini_options_t opts, gemini_context_t *ctx);
/** gemini_create for a Fortran communicator handle. Agreed. @since 0.1 */
GEMINI_API gemini_status_t gemini_create_f(MPI_Fint comm, gemini_options_t opts, gemini_context_t *ctx);
/** Ends the context and its parameters; sets NULL, accepts NULL. Agreed; local after a negative status
 *  or after MPI_Finalize. Rank 0 writes the order that is known (learnt by a step, or from trace_in) to
 *  option trace_out.
 *  @par Blocking until peers arrive. @retval GEMINI_ERR_STATE MPI was finalised before: local memory was
 *  freed @retval GEMINI_ERR_IO trace_out cannot be written @retval GEMINI_ERR_UNSUPPORTED it is not
 *  written: in that order an INFERENCE operation held a chunk longer than training did. With these two
 *  the context is gone all the same. @since 0.1 */
GEMINI_API gemini_status_t gemini_destroy(gemini_context_t *ctx);
/** Leaves alone: peers get GEMINI_ERR_REMOTE_FATAL with the words `why` in their present or next wait;
 *  this context can only be destroyed. Local. @since 0.1 */
GEMINI_API gemini_status_t gemini_abort(gemini_context_t ctx, const char *why);
/** Reads an option in force, `auto` resolved. Local. Outputs and statuses as gemini_options_get.
 *  @since 0.1 */
GEMINI_API gemini_status_t gemini_get_option(gemini_context_t ctx, const char *key, char *value,
                                             int64_t capacity);
/** Changes an option of scope "step" between steps; initial_scale and loss_scale start the loss scale anew.
 *  Agreed. @retval GEMINI_ERR_ARGUMENT unknown key or
 *  value @retval GEMINI_ERR_STATE the option is fixed at create, or a micro-batch is open. @since 0.1 */
GEMINI_API gemini_status_t gemini_set_option(gemini_context_t ctx, const char *key, const char *value);
/** 1 if data, gradient and workspace pointers are device pointers. Local. @since 0.1 */
GEMINI_API gemini_status_t gemini_on_device(gemini_context_t ctx, int32_t *on_device);

/* ---- parameters -------------------------------------------------------------------------- */

/** Registers a parameter; allocates nothing of its size. Local, compared over ranks at commit.
 *  @param name 1 to 255 bytes, copied @param dtype see gemini_dtype_t @param ndim 0 (one element) to 32
 *  @param shape ndim extents >= 0, row-major, copied; may be NULL if ndim is 0 @param flags
 *  GEMINI_PARAM_* @param[out] param new handle, NULL on failure
 *  @retval GEMINI_ERR_DUPLICATE the name is taken @retval GEMINI_ERR_STATE after commit. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_register(gemini_context_t ctx, const char *name,
                                                 gemini_dtype_t dtype, int32_t ndim,
                                                 const int64_t *shape, int32_t flags,
                                                 gemini_param_t *param);
/** Gives a parameter a second name: tied weights have one storage and one optimizer state. Local.
 *  @retval GEMINI_ERR_DUPLICATE the name is taken @retval GEMINI_ERR_STATE after commit. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_alias(gemini_context_t ctx, const char *name,
                                              gemini_param_t param);
/** Sets lr_scale (factor on lr), weight_decay, frozen (on/off) or grad_dtype (same, f32; before commit).
 *  Local before commit, Agreed after; after commit the same parameter and value on every rank.
 *  @retval GEMINI_ERR_ARGUMENT unknown key or value @retval GEMINI_ERR_STATE too late, or a lease or
 *  micro-batch is open @retval GEMINI_ERR_OUT_OF_MEMORY unfreezing does not fit. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_set_option(gemini_param_t param, const char *key,
                                                   const char *value);
/** Names the caller's memory of an IGNORED parameter: elems values of its dtype, valid until destroy or
 *  the next attach. Local; outside leases. @retval GEMINI_ERR_ARGUMENT not IGNORED @retval
 *  GEMINI_ERR_STATE leased now. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_attach(gemini_param_t param, void *data);
/** Values by rule: depend on name, seed and index, not on the number of ranks (Philox4x32-10 of Salmon
 *  et al. 2011). Local, before commit; drawn at commit on the owner of each range. A later init_*
 *  replaces an earlier one. @retval GEMINI_ERR_STATE after commit @retval GEMINI_ERR_ARGUMENT unknown
 *  kind, not finite, or an IGNORED parameter. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_init_fill(gemini_param_t param, gemini_init_t kind, double a,
                                                  double b, uint64_t seed);
/** Values from memory: elems values, row-major, host, in the parameter's dtype; rank 0's count, others
 *  may pass NULL. Local, before commit; copied on rank 0 and kept until commit. Statuses as
 *  gemini_param_init_fill. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_init_data(gemini_param_t param, const void *host_values);
/** Values from a function, called during commit on the owner of each range. Local, before commit.
 *  Statuses as gemini_param_init_fill. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_init_function(gemini_param_t param, gemini_init_fn fn, void *user);
/** Ends registration: compares it over ranks, packs chunks, allocates this rank's shards, fills them.
 *  Agreed. @par Blocking yes. @retval GEMINI_ERR_STATE committed before, or a parameter without
 *  initialiser (named) @retval GEMINI_ERR_MISMATCH names, order, shapes, dtypes, flags, options or
 *  initialisers differ (the first is named) @retval GEMINI_ERR_OUT_OF_MEMORY the shards do not fit
 *  @retval GEMINI_ERR_NOT_FOUND, GEMINI_ERR_IO, GEMINI_ERR_MISMATCH on all ranks: there is no file
 *  trace_in, it is damaged, it was learnt with another model, other chunks or another number of ranks
 *  @retval GEMINI_ERR_CALLBACK an initialiser returned nonzero. @since 0.1 */
GEMINI_API gemini_status_t gemini_commit(gemini_context_t ctx);
/** The parameter of that name or alias. Local. @retval GEMINI_ERR_NOT_FOUND none. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_find(gemini_context_t ctx, const char *name, gemini_param_t *param);
/** The index-th parameter in registration order, from 0. Local. @retval GEMINI_ERR_NOT_FOUND past the
 *  end @retval GEMINI_ERR_ARGUMENT index < 0. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_at(gemini_context_t ctx, int64_t index, gemini_param_t *param);
/** What was registered. Local. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_info(gemini_param_t param, gemini_param_info_t *info);

/* ---- operations -------------------------------------------------------------------------- */

/** Says what the following operations are; starts and ends nothing by itself. Ordered. FORWARD after
 *  commit and after a successful step. @retval GEMINI_ERR_STATE before commit. @since 0.1 */
GEMINI_API gemini_status_t gemini_set_phase(gemini_context_t ctx, gemini_phase_t phase);
/** The phase in force. Local. @retval GEMINI_ERR_STATE before commit. @since 0.1 */
GEMINI_API gemini_status_t gemini_get_phase(gemini_context_t ctx, gemini_phase_t *phase);
/** The caller's compute stream (a cudaStream_t); NULL: default stream. Ignored on the host. Local.
 *  @since 0.1 */
GEMINI_API gemini_status_t gemini_set_stream(gemini_context_t ctx, void *stream);
/** Leases parameters: gathers what is not here. Ordered. On the host: @par Blocking until the values may
 *  be read. A handle twice in one list counts once; operations may nest and share parameters; count 0 is
 *  an operation without parameters. @param params count handles of this context (NULL if count is 0)
 *  @retval GEMINI_ERR_STATE before commit, or a FORWARD one that would open more than `accumulate`
 *  micro-batches @retval GEMINI_ERR_OUT_OF_MEMORY the operation does not fit device_memory (equal on all
 *  ranks; says what is needed), or does not fit beside this rank's workspaces (free some and call again,
 *  peers wait). @since 0.1 */
GEMINI_API gemini_status_t gemini_pre_op(gemini_context_t ctx, const gemini_param_t *params, int32_t count);
/** Ends the youngest lease of each parameter named; in BACKWARD starts the reduction of chunks whose
 *  gradients are all due. Ordered. @par Blocking no. @retval GEMINI_ERR_STATE a parameter is not leased
 *  (nothing was released), or in debug builds was written through gemini_param_data. @since 0.1 */
GEMINI_API gemini_status_t gemini_post_op(gemini_context_t ctx, const gemini_param_t *params, int32_t count);
/** The gathered values, read only: row-major, contiguous, aligned to 64 bytes (host) or 256 (device),
 *  constant from pre_op to that post_op, perhaps different at the next. Local. @retval
 *  GEMINI_ERR_STATE not leased. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_data(gemini_param_t param, void **data);
/** The gradient to write, in a lease taken in BACKWARD; shape of the data, its dtype or grad_dtype.
 *  Local. @param[out] accumulate 0 (once per opened gradient): write every element; 1: add. NULL: the
 *  buffer is cleared at first touch, so adding is always right. @retval GEMINI_ERR_STATE no BACKWARD
 *  lease, or declared ready @retval GEMINI_ERR_ARGUMENT FROZEN or IGNORED. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_grad(gemini_param_t param, void **grad, int32_t *accumulate);
/** Declares a gradient complete before the counts say so. Ordered. @retval GEMINI_ERR_STATE it was not
 *  leased in BACKWARD in this micro-batch @retval GEMINI_ERR_ARGUMENT FROZEN or IGNORED. @since 0.1 */
GEMINI_API gemini_status_t gemini_grad_ready(gemini_param_t param);
/** The factor to multiply the loss gradient by. Local. @retval GEMINI_ERR_STATE before commit. @since 0.1 */
GEMINI_API gemini_status_t gemini_loss_scale(gemini_context_t ctx, double *scale);
/** Ends the iteration: finishes reductions, agrees (norm, non-finite, produced gradients), unscales,
 *  clips, updates this rank's shards; skips the update on all ranks if a gradient is not finite.
 *  Agreed. @par Blocking yes on the host. @param[out] info may be NULL @retval GEMINI_ERR_STATE a lease
 *  is open, fewer than `accumulate` micro-batches, or no BACKWARD operation at all @retval
 *  GEMINI_ERR_MISMATCH ranks differ in lr or in the operations since the last step: nothing is updated,
 *  gemini_discard and begin the iteration anew (check = order names the first call that differs) @retval
 *  GEMINI_ERR_CALLBACK the custom update returned nonzero. @since 0.1 */
GEMINI_API gemini_status_t gemini_step(gemini_context_t ctx, gemini_step_info_t *info);
/** Drops micro-batches and gradients since the last step; the phase is FORWARD again. Agreed. @retval
 *  GEMINI_ERR_STATE a lease is open. @since 0.1 */
GEMINI_API gemini_status_t gemini_discard(gemini_context_t ctx);
/** Sets the learning rate from the next step on; compared over ranks there. Local. @retval
 *  GEMINI_ERR_ARGUMENT negative or not finite. @since 0.1 */
GEMINI_API gemini_status_t gemini_set_lr(gemini_context_t ctx, double lr);
/** Gives communication a chance to proceed, does nothing else. Local. @par Blocking no. @since 0.1 */
GEMINI_API gemini_status_t gemini_progress(gemini_context_t ctx);

/* ---- values outside operations ----------------------------------------------------------- */

/** Reads the master values (a FROZEN 16-bit parameter is its own master). Agreed; outside leases.
 *  @param as a floating dtype to convert to @param[out] host_values elems values on root; may be NULL elsewhere @param root a rank, or -1: every
 *  rank. @retval GEMINI_ERR_ARGUMENT an IGNORED parameter, root out of range. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_get(gemini_param_t param, gemini_dtype_t as, void *host_values,
                                            int32_t root);
/** Writes the master values; the compute copy follows, moments and step count stay. Agreed; outside
 *  leases. @param from the floating dtype of host_values @param host_values elems values on root, may be
 *  NULL elsewhere @param root a rank, or -1: every rank passes the same values. @since 0.1 */
GEMINI_API gemini_status_t gemini_param_set(gemini_param_t param, gemini_dtype_t from,
                                            const void *host_values, int32_t root);
/** Reads the reduced, unscaled gradient before step. Agreed; outside leases. Arguments as
 *  gemini_param_get. @retval GEMINI_ERR_STATE none is held. @since 0.1 */
GEMINI_API gemini_status_t gemini_grad_get(gemini_param_t param, gemini_dtype_t as, void *host_values,
                                           int32_t root);
/** Calls fn for each piece of this rank's shards; values may be changed. Agreed; outside leases.
 *  @retval GEMINI_ERR_CALLBACK fn returned nonzero. @since 0.1 */
GEMINI_API gemini_status_t gemini_shard_visit(gemini_context_t ctx, gemini_shard_fn fn, void *user);
/** The update of `optimizer = custom`: step calls it for each piece. Local; before commit or after. @retval
 *  GEMINI_ERR_STATE the optimizer is another. @since 0.1 */
GEMINI_API gemini_status_t gemini_set_update(gemini_context_t ctx, gemini_shard_fn fn, void *user);

/* ---- checkpoints ------------------------------------------------------------------------- */

#define GEMINI_STATE_PER_RANK 1          /**< each rank its own bytes */
#define GEMINI_CHECKPOINT_ASYNC 1        /**< write while training goes on */
#define GEMINI_CHECKPOINT_PARTIAL 2      /**< read what fits by name and shape */
#define GEMINI_CHECKPOINT_WEIGHTS_ONLY 4 /**< values alone; moments and counts start anew */
#define GEMINI_CHECKPOINT_CONVERT 8      /**< accept other floating dtypes */

/** Registers the program's own bytes (epoch, data position, RNG) for checkpoints; valid until destroy.
 *  Local. @retval GEMINI_ERR_UNSUPPORTED a build without HDF5. @since 0.1 */
GEMINI_API gemini_status_t gemini_state_register(gemini_context_t ctx, const char *name, void *bytes,
                                                 int64_t size_bytes, int32_t flags);
/** Writes everything to one HDF5 file. Agreed. @retval GEMINI_ERR_UNSUPPORTED a build without HDF5.
 *  @since 0.1 */
GEMINI_API gemini_status_t gemini_checkpoint_write(gemini_context_t ctx, const char *path, int32_t flags);
/** Waits for the last asynchronous write. Agreed. @retval GEMINI_ERR_UNSUPPORTED a build without HDF5.
 *  @since 0.1 */
GEMINI_API gemini_status_t gemini_checkpoint_wait(gemini_context_t ctx);
/** Reads a checkpoint. Agreed. @retval GEMINI_ERR_UNSUPPORTED a build without HDF5. @since 0.1 */
GEMINI_API gemini_status_t gemini_checkpoint_read(gemini_context_t ctx, const char *path, int32_t flags);
/** What the last PARTIAL read skipped, by name and reason. Local. @retval GEMINI_ERR_UNSUPPORTED a build
 *  without HDF5. @since 0.1 */
GEMINI_API gemini_status_t gemini_checkpoint_notes(gemini_context_t ctx, char *text, int64_t capacity);

/* ---- memory and insight ------------------------------------------------------------------ */

/** Compute memory for the caller, counted as non-model data; aligned as data. Local. @param[out] ptr NULL
 *  on failure @retval GEMINI_ERR_OUT_OF_MEMORY it does not fit device_memory; with placement = auto or
 *  planned also if it is more than what ranks saw in use at this operation in the last iteration, and so
 *  agreed to leave free; the next iteration counts with it. @since 0.1 */
GEMINI_API gemini_status_t gemini_workspace_alloc(gemini_context_t ctx, int64_t size_bytes, void **ptr);
/** Gives a workspace back; NULL is accepted. Local. @retval GEMINI_ERR_ARGUMENT not from
 *  gemini_workspace_alloc of this context. @since 0.1 */
GEMINI_API gemini_status_t gemini_workspace_free(gemini_context_t ctx, void *ptr);
/** Tells what the caller holds now outside the library. Local. @param non_model_bytes >= 0, replaces the
 *  last note. @since 0.1 */
GEMINI_API gemini_status_t gemini_memory_note(gemini_context_t ctx, int64_t non_model_bytes);
/** One number of this rank. Local. @since 0.1 */
GEMINI_API gemini_status_t gemini_stat(gemini_context_t ctx, gemini_stat_t which, int64_t *value);
/** Peaks and counts start anew. Local. @since 0.1 */
GEMINI_API gemini_status_t gemini_stat_reset(gemini_context_t ctx);
/** A page for people over all ranks. Agreed. @param path file written by rank 0; NULL: stdout of rank 0
 *  @retval GEMINI_ERR_IO it cannot be written. @since 0.1 */
GEMINI_API gemini_status_t gemini_report(gemini_context_t ctx, const char *path);
/** What every rank did so far and when, as Chrome trace JSON for chrome://tracing or Perfetto: operations,
 *  time in the library, gathers and reductions, moves between tiers, memory. Rank 0 writes one file with a
 *  process per rank; clocks start together at create. Each rank keeps its last 262144 events; the file says
 *  how many older ones it dropped. Agreed. @param path as rank 0 has it
 *  @retval GEMINI_ERR_STATE option trace = off, nothing was recorded @retval GEMINI_ERR_IO it cannot be
 *  written, an older file is as before. @since 0.1 */
GEMINI_API gemini_status_t gemini_trace_write(gemini_context_t ctx, const char *path);
/** Ranks, nodes and groups. Local. @since 0.1 */
GEMINI_API gemini_status_t gemini_topology(gemini_context_t ctx, gemini_topology_t *topology);

/* ---- shorthands -------------------------------------------------------------------------- */

/** gemini_param_data as a value; NULL on any error. */
static inline void *gemini_data(gemini_param_t p) {
  void *data = 0;
  return gemini_param_data(p, &data) == GEMINI_SUCCESS ? data : 0;
}
/** gemini_param_grad as a value, cleared at first touch; NULL on any error. */
static inline void *gemini_grad(gemini_param_t p) {
  void *grad = 0;
  return gemini_param_grad(p, &grad, 0) == GEMINI_SUCCESS ? grad : 0;
}

#ifdef __cplusplus
}
#endif

#endif

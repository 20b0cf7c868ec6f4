// One dialect for OpenCL C 1.2, CUDA, HIP and C++ on the host, chosen by what the compiler defines. Kernels use only these names
// and plain C: no overloads, no templates, SHARED only at the top of a kernel, GLOBAL or LOCAL on every pointer.
// A work-group is always 64 work-items along x.
//
// KERNEL(name)(MEMORY(const f32, x), MEMORY(f32, y), const int n) { AT(x); AT(y); ELEMENT(i, n) y[i] = x[i]; }

#if defined(__OPENCL_VERSION__)

#define KERNEL(name) __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void name
#define HELPER static inline
#define GLOBAL __global
#define LOCAL __local
#define SHARED(type, name, count) __local type name[count]
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define TID ((int)get_local_id(0))
#define BID_X ((int)get_group_id(0))
#define BID_Y ((int)get_group_id(1))
#define BID_Z ((int)get_group_id(2))
#define GDIM_X ((int)get_num_groups(0))
#define INF INFINITY
#if !defined(UNMOOR_TYPES)  // Once, where kernels share a program.
#define UNMOOR_TYPES
#if defined(cl_khr_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
#endif
typedef float f32;
typedef char i8;
typedef uchar u8;
typedef short i16;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
#endif

#else

#if defined(UNMOOR_HOST)
#define KERNEL(name) static void name
#define HELPER static inline
#define SHARED(type, name, count) static type name[count]
#define BARRIER() unmoor_host::barrier()
#define TID unmoor_host::work_item()
#define BID_X unmoor_host::group(0)
#define BID_Y unmoor_host::group(1)
#define BID_Z unmoor_host::group(2)
#define GDIM_X unmoor_host::groups(0)
#define INF INFINITY
#else
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(64) name
#define HELPER static __device__ __forceinline__
#define SHARED(type, name, count) __shared__ type name[count]
#define BARRIER() __syncthreads()
#define TID ((int)threadIdx.x)
#define BID_X ((int)blockIdx.x)
#define BID_Y ((int)blockIdx.y)
#define BID_Z ((int)blockIdx.z)
#define GDIM_X ((int)gridDim.x)
#define INF __int_as_float(0x7f800000)
#endif
#define GLOBAL
#define LOCAL
#if !defined(UNMOOR_TYPES)
#define UNMOOR_TYPES
typedef float f32;
typedef double f64;
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
#endif

#endif

// A buffer and where its operand begins, in elements.
#define MEMORY(type, name) GLOBAL type* name, const i64 name##_at
#define AT(name) name += name##_at

// The places of n that this work-item of a group walks. Every work-item goes round equally often: PoCL 3.1 turns loops from TID to n into gathers
// from wild addresses.
#define EACH(i, n) for (int i##_from = 0, i = TID; i##_from < (n); i##_from += 64, i += 64) if (i < (n))

// This work-item's element of n, or this work-group's row.
#define ELEMENT(i, n)                                   \
  const int i = (BID_Y * GDIM_X + BID_X) * 64 + TID; \
  if (i < (n))
#define ROW (BID_Y * GDIM_X + BID_X)

// Quotient and remainder of non-negative numbers: unsigned division is the faster one.
#define DIV(a, b) ((int)((u32)(a) / (u32)(b)))
#define MOD(a, b) ((int)((u32)(a) % (u32)(b)))

// Arithmetic in REAL, which is f32 or f64; R(0.5) is a literal of it.
#if defined(REAL_IS_F64)
#define REAL f64
#define R(literal) literal
#else
#define REAL f32
#define R(literal) literal##f
#endif

// Marks small functions that device code uses too.
#ifndef QUIRE_KERNELS_HOST_DEVICE_H_
#define QUIRE_KERNELS_HOST_DEVICE_H_

#ifdef __CUDACC__
#define QUIRE_HOST_DEVICE __host__ __device__
#else
#define QUIRE_HOST_DEVICE
#endif

#endif  // QUIRE_KERNELS_HOST_DEVICE_H_

/* The core's own kernels, called by device_cuda.c. */
#ifndef GPURUN_RUN_DEVICE_KERNELS_H
#define GPURUN_RUN_DEVICE_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads `bytes` (rounded down to 16) from `from`, 16-byte aligned. `sink` is device memory of 4 bytes that
 * is in fact never written; it keeps the loads alive. */
cudaError_t device_launch_read(const void *from, size_t bytes, unsigned *sink, cudaStream_t stream);

/* Waits until *let_go is `turn` or later, counted round the end of 32 bits, for limit_ns at the most: then
 * *ran_out becomes `turn`. Both are mapped host memory. */
cudaError_t device_launch_hold(const unsigned *let_go, unsigned turn, unsigned long long limit_ns,
                               unsigned *ran_out, cudaStream_t stream);

/* Waits for so long by the device's nanosecond clock. */
cudaError_t device_launch_spin(unsigned long long ns, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif

// A backend whose work runs on a device, in streams.
//
//   auto backend = CreateDeviceBackend({});
//   Result<StreamId> copies = (*backend)->NewStream();
//   (*backend)->UseStream(*copies);                        // calls return once queued
//   (*backend)->TransferBlocks(device_pool, host_pool, pairs);
//   Result<EventId> done = (*backend)->Record(*copies);
//   (*backend)->Wait(kDefaultStream, *done);               // what follows there starts after it
//
// Memory. Small arrays (tables, lengths, targets, ids, orders, scales, slopes, sinks) are host
// memory, read before a call returns. Pools, queries, outputs, rows, dense blocks and workspaces
// may be device memory or host memory. A host pool is page-locked at its first use and must stay
// mapped while the backend lives; kernels then reach it over the bus. Other host tensors are copied
// in and out; if one of them is an output, the call waits for it on any stream.
//
// On kDefaultStream every call is complete on return, as the Backend interface says. On another
// stream it is queued: what it reads and writes belongs to the device until an event recorded after
// it has passed, and a fault of the device is reported by a later call. Nothing orders two streams
// but events: a copy must wait for the event of the work that wrote its source, and whoever reads
// its destination for the event of the copy.
#ifndef QUIRE_KERNELS_DEVICE_BACKEND_H_
#define QUIRE_KERNELS_DEVICE_BACKEND_H_

#include <cstdint>
#include <memory>

#include "kernels/backend.h"

namespace quire::kernels {

using StreamId = int32_t;
using EventId = int64_t;

constexpr StreamId kDefaultStream = 0;

class DeviceBackend : public Backend {
 public:
  virtual Result<StreamId> NewStream() = 0;
  // Where the calls that follow are queued. INVALID_ARGUMENT for a stream that does not exist.
  virtual Status UseStream(StreamId stream) = 0;

  // An event that passes when everything queued on `stream` so far has finished.
  virtual Result<EventId> Record(StreamId stream) = 0;
  // What is queued on `stream` from now on starts after `event` has passed.
  virtual Status Wait(StreamId stream, EventId event) = 0;
  virtual Result<bool> HasPassed(EventId event) = 0;
  // Gives back an event that nobody asks for any more; its id may be used again.
  virtual void Release(EventId event) = 0;
  // Blocks until everything queued on `stream` has finished.
  virtual Status Synchronize(StreamId stream) = 0;

  virtual Result<std::byte*> AllocateDevice(size_t bytes) = 0;
  virtual void FreeDevice(std::byte* memory) = 0;
  // Between host and device memory, in any direction; queued like every call.
  virtual Status Copy(void* to, const void* from, size_t bytes) = 0;
};

// The first GPU. UNSUPPORTED, naming what is missing, if this build has no CUDA kernels or the
// machine no device.
Result<std::unique_ptr<DeviceBackend>> CreateDeviceBackend();

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_DEVICE_BACKEND_H_

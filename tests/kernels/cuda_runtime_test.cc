// The CUDA device on a fake runtime: what is created is destroyed, and no error outlives its call.
#include "kernels/simt/cuda_runtime.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/kernels/fake_cuda/fake_cuda.h"

namespace quire::kernels {
namespace {

using testing::fake_cuda;

struct Args {
  int value;
};

void Kernel(Args) {}

class CudaRuntimeTest : public ::testing::Test {
 protected:
  CudaRuntimeTest() { fake_cuda = {}; }

  std::unique_ptr<Device> Open() {
    Result<std::unique_ptr<Device>> device = cuda::OpenDevice();
    EXPECT_TRUE(device.ok()) << device.status().message();
    return std::move(*device);
  }

  Status Launch(Device& device, int64_t ctas, size_t shared) {
    return device.Launch(&Kernel, ctas, 128, shared, kDefaultStream, Args{7});
  }
};

TEST_F(CudaRuntimeTest, MachinesThatCannotAreNamed) {
  fake_cuda.devices = 0;
  EXPECT_EQ(cuda::OpenDevice().status().code(), StatusCode::kUnsupported);
  fake_cuda.devices = 1;
  fake_cuda.failing = "GetDeviceCount";
  fake_cuda.failure = cudaErrorNoDevice;
  EXPECT_EQ(cuda::OpenDevice().status().code(), StatusCode::kUnsupported);
  fake_cuda.major = 7;
  EXPECT_EQ(cuda::OpenDevice().status().message(), "compute capability 7.x, the kernels need 8.0");
  EXPECT_EQ(fake_cuda.last_error, cudaSuccess);
}

TEST_F(CudaRuntimeTest, ALaunchIsToldAllThatItNeeds) {
  const auto device = Open();
  ASSERT_TRUE(Launch(*device, 5, 1024).ok());
  EXPECT_EQ(fake_cuda.kernel, reinterpret_cast<const void*>(&Kernel));
  EXPECT_EQ(fake_cuda.ctas, 5u);
  EXPECT_EQ(fake_cuda.threads, 128u);
  EXPECT_EQ(fake_cuda.shared, 1024u);
  EXPECT_EQ(fake_cuda.argument, 7);
  EXPECT_EQ(fake_cuda.allowed_shared, 48 << 10);
  ASSERT_TRUE(Launch(*device, 6, 100 << 10).ok());
  EXPECT_EQ(fake_cuda.allowed_shared, 100 << 10);
  ASSERT_TRUE(Launch(*device, 0, 0).ok());
  EXPECT_EQ(fake_cuda.ctas, 6u) << "a launch of nothing is none";
  EXPECT_EQ(Launch(*device, int64_t{1} << 31, 0).argument(), "grid");
}

// A kernel is launched after each call that fails; it must not report that call's error.
TEST_F(CudaRuntimeTest, NoErrorOutlivesItsCall) {
  const auto device = Open();
  const StreamId stream = *device->NewStream();
  const EventId event = *device->Record(stream);
  int word = 0;
  const std::pair<const char*, std::function<bool()>> calls[] = {
      {"Malloc", [&] { return device->Allocate(16).ok(); }},
      {"PointerGetAttributes", [&] { return device->IsReachable(&word); }},
      {"HostRegister",
       [&] { return device->Pin(reinterpret_cast<std::byte*>(&word), sizeof(word)).ok(); }},
      {"MemcpyAsync", [&] { return device->Copy(stream, &word, &word, 0).ok(); }},
      {"MemsetAsync", [&] { return device->Zero(stream, &word, 0).ok(); }},
      {"StreamCreate", [&] { return device->NewStream().ok(); }},
      {"StreamSynchronize", [&] { return device->Synchronize(stream).ok(); }},
      {"StreamWaitEvent", [&] { return device->Wait(stream, event).ok(); }},
      {"EventCreate", [&] { return device->Record(stream).ok(); }},
      {"EventRecord", [&] { return device->Record(stream).ok(); }},
      {"EventQuery", [&] { return device->HasPassed(event).ok(); }},
      {"FuncSetAttribute", [&] { return Launch(*device, 1, 64 << 10).ok(); }},
      {"LaunchKernel", [&] { return Launch(*device, 1, 0).ok(); }}};
  for (const auto& [name, call] : calls) {
    fake_cuda.failing = name;
    EXPECT_FALSE(call()) << name;
    EXPECT_EQ(fake_cuda.failing, "") << name << " was not called";
    EXPECT_EQ(fake_cuda.last_error, cudaSuccess) << name;
    EXPECT_TRUE(Launch(*device, 1, 0).ok()) << name;
  }
}

TEST_F(CudaRuntimeTest, AnEventThatHasNotPassedIsNoError) {
  const auto device = Open();
  const EventId event = *device->Record(kDefaultStream);
  fake_cuda.failing = "EventQuery";
  fake_cuda.failure = cudaErrorNotReady;
  const Result<bool> early = device->HasPassed(event);
  ASSERT_TRUE(early.ok()) << early.status().message();
  EXPECT_FALSE(*early);
  EXPECT_EQ(fake_cuda.last_error, cudaSuccess);
  EXPECT_TRUE(*device->HasPassed(event));
}

TEST_F(CudaRuntimeTest, WhatIsCreatedIsDestroyed) {
  std::vector<std::byte> memory(1 << 16);
  {
    const auto device = Open();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(device->NewStream().ok());
    for (int i = 0; i < 4; ++i) {
      const Result<EventId> event = device->Record(i % 3);
      ASSERT_TRUE(event.ok());
      if (i % 2 == 0) device->Release(*event);
    }
    EXPECT_EQ(fake_cuda.streams, 3);
    EXPECT_EQ(fake_cuda.events, 2);
    ASSERT_TRUE(device->Pin(memory.data(), 4096).ok());
    ASSERT_TRUE(device->Pin(memory.data() + 8192, 4096).ok());
    ASSERT_TRUE(device->Pin(memory.data(), 6000).ok());
    EXPECT_GT(fake_cuda.synchronizations, 0) << "unlocked while a kernel may use it";
    EXPECT_EQ(fake_cuda.registered,
              (std::map<void*, size_t>{{memory.data(), 6000}, {memory.data() + 8192, 4096}}));
    const Result<std::byte*> taken = device->Allocate(16);
    ASSERT_TRUE(taken.ok());
    device->Free(*taken);
  }
  EXPECT_EQ(fake_cuda.streams, 0);
  EXPECT_EQ(fake_cuda.events, 0);
  EXPECT_EQ(fake_cuda.allocations, 0);
  EXPECT_TRUE(fake_cuda.registered.empty());
}

}  // namespace
}  // namespace quire::kernels

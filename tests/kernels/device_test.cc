// Page-locking of pools, which the devices share.
#include "kernels/simt/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/simt/emulated_runtime.h"
#include "tests/kernels/testing/pool_fixture.h"

namespace quire::kernels {
namespace {

constexpr size_t kPage = 4096;

class PinTest : public ::testing::Test {
 protected:
  PinTest() : memory_(16 * kPage), device_(emulated::MakeDevice({})) {}

  std::byte* At(size_t page) { return memory_.data() + page * kPage; }

  void Pin(size_t page, size_t pages) { ASSERT_TRUE(device_->Pin(At(page), pages * kPage).ok()); }

  // "x" per page that kernels can reach, "." for others.
  std::string Reachable() {
    std::string pages;
    for (size_t page = 0; page < 16; ++page) {
      const bool first = device_->IsReachable(At(page));
      EXPECT_EQ(first, device_->IsReachable(At(page + 1) - 1));
      pages += first ? 'x' : '.';
    }
    return pages;
  }

  testing::Memory memory_;
  std::unique_ptr<Device> device_;
};

TEST_F(PinTest, NothingIsReachableUnpinned) { EXPECT_EQ(Reachable(), "................"); }

TEST_F(PinTest, APoolThatGrowsIsPinnedToItsEnd) {
  Pin(2, 2);
  EXPECT_EQ(Reachable(), "..xx............");
  Pin(2, 5);
  EXPECT_EQ(Reachable(), "..xxxxx.........");
  Pin(2, 1);  // a view of less changes nothing
  Pin(3, 4);
  EXPECT_EQ(Reachable(), "..xxxxx.........");
}

TEST_F(PinTest, RangesThatOverlapBecomeOne) {
  Pin(4, 2);
  Pin(8, 2);
  Pin(12, 1);
  Pin(5, 4);
  EXPECT_EQ(Reachable(), "....xxxxxx..x...");
  Pin(0, 16);
  EXPECT_EQ(Reachable(), "xxxxxxxxxxxxxxxx");
}

TEST_F(PinTest, NeighboursStayApart) {
  Pin(4, 2);
  Pin(6, 2);
  Pin(2, 2);
  EXPECT_EQ(Reachable(), "..xxxxxx........");
}

}  // namespace
}  // namespace quire::kernels

// The contract as its files say it, comments included.
#ifndef QUIRE_TESTS_PROTO_CONTRACT_H_
#define QUIRE_TESTS_PROTO_CONTRACT_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace quire::testing {

template <typename T>
std::string CommentOf(const T& descriptor) {
  google::protobuf::SourceLocation location;
  return descriptor.GetSourceLocation(&location) ? location.leading_comments : "";
}

class ContractTest : public ::testing::Test {
 protected:
  ContractTest() {
    std::ifstream stored(QUIRE_DESCRIPTORS, std::ios::binary);
    google::protobuf::FileDescriptorSet set;
    EXPECT_TRUE(set.ParseFromIstream(&stored));
    for (const auto& file : set.file()) {
      const google::protobuf::FileDescriptor* built = pool_.BuildFile(file);
      EXPECT_NE(built, nullptr) << file.name();
      if (file.name().starts_with("quire/")) files_.push_back(built);
    }
  }

  google::protobuf::DescriptorPool pool_;
  std::vector<const google::protobuf::FileDescriptor*> files_;
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_PROTO_CONTRACT_H_

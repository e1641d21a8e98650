// The contract's rules, read from its descriptors, and its field numbers against a stored golden.
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/proto/contract.h"

namespace quire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;
using testing::CommentOf;

// GroupKind -> GROUP_KIND_
std::string ValuePrefix(const std::string& enum_name) {
  std::string prefix;
  for (const char c : enum_name) {
    if (std::isupper(static_cast<unsigned char>(c)) && !prefix.empty()) prefix.push_back('_');
    prefix.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
  }
  return prefix + "_";
}

class DescriptorTest : public testing::ContractTest {
 protected:
  std::vector<const ServiceDescriptor*> Services() const {
    std::vector<const ServiceDescriptor*> services;
    for (const FileDescriptor* file : files_) {
      for (int i = 0; i < file->service_count(); ++i) services.push_back(file->service(i));
    }
    return services;
  }

  std::vector<const MethodDescriptor*> Methods() const {
    std::vector<const MethodDescriptor*> methods;
    for (const ServiceDescriptor* service : Services()) {
      for (int i = 0; i < service->method_count(); ++i) methods.push_back(service->method(i));
    }
    return methods;
  }

  std::vector<const Descriptor*> Messages() const {
    std::vector<const Descriptor*> messages;
    for (const FileDescriptor* file : files_) {
      for (int i = 0; i < file->message_type_count(); ++i) {
        messages.push_back(file->message_type(i));
        EXPECT_EQ(file->message_type(i)->nested_type_count(), 0) << file->message_type(i)->name();
      }
    }
    return messages;
  }

  std::vector<const EnumDescriptor*> Enums() const {
    std::vector<const EnumDescriptor*> enums;
    for (const FileDescriptor* file : files_) {
      for (int i = 0; i < file->enum_type_count(); ++i) enums.push_back(file->enum_type(i));
    }
    return enums;
  }
};

TEST_F(DescriptorTest, FilesBelongToTheVersionedPackageOfTheirFolder) {
  EXPECT_EQ(files_.size(), 5u);
  for (const FileDescriptor* file : files_) {
    EXPECT_EQ(file->package(), "quire.v1") << file->name();
    EXPECT_TRUE(file->name().starts_with("quire/v1/")) << file->name();
  }
}

TEST_F(DescriptorTest, ServicesAreNamedSo) {
  std::set<std::string> names;
  for (const ServiceDescriptor* service : Services()) names.insert(service->name());
  EXPECT_EQ(names, (std::set<std::string>{"AdminService", "CacheService"}));
}

TEST_F(DescriptorTest, EveryRpcHasItsOwnRequestAndResponse) {
  std::set<std::string> used;
  for (const MethodDescriptor* method : Methods()) {
    EXPECT_EQ(method->input_type()->name(), method->name() + "Request");
    EXPECT_EQ(method->output_type()->name(), method->name() + "Response");
    EXPECT_TRUE(used.insert(method->input_type()->name()).second) << method->name();
  }
  EXPECT_EQ(used.size(), 20u);
}

TEST_F(DescriptorTest, OnlyStepsStream) {
  for (const MethodDescriptor* method : Methods()) {
    const bool streams = method->name() == "StreamSteps";
    EXPECT_EQ(method->client_streaming(), streams) << method->name();
    EXPECT_EQ(method->server_streaming(), streams) << method->name();
  }
}

TEST_F(DescriptorTest, EveryRpcSaysWhatFailsAndWhetherToRetry) {
  for (const MethodDescriptor* method : Methods()) {
    const std::string comment = CommentOf(*method);
    EXPECT_NE(comment.find("Errors"), std::string::npos) << method->full_name();
    EXPECT_NE(comment.find("Retry:"), std::string::npos) << method->full_name();
  }
  for (const ServiceDescriptor* service : Services()) EXPECT_NE(CommentOf(*service), "");
}

TEST_F(DescriptorTest, EveryMessageThatIsNotOfOneRpcIsDescribed) {
  for (const Descriptor* message : Messages()) {
    const std::string& name = message->name();
    if (name.ends_with("Request") || name.ends_with("Response")) continue;
    // A self-explaining noun of the vocabulary needs no sentence.
    if (std::set<std::string>{"Pool", "Worker", "Sequence", "Pin"}.contains(name)) continue;
    const bool described = !CommentOf(*message).empty();
    const bool result = name.ends_with("Result") || name.ends_with("Failure") ||
                        name.ends_with("Counts") || name.ends_with("Finding") ||
                        name.ends_with("Table") || name.ends_with("Prefix");
    EXPECT_TRUE(described || result) << name;
  }
}

TEST_F(DescriptorTest, EnumsStartUnspecifiedAndPrefixTheirValues) {
  EXPECT_EQ(Enums().size(), 6u);
  for (const EnumDescriptor* type : Enums()) {
    const std::string prefix = ValuePrefix(type->name());
    EXPECT_EQ(type->value(0)->name(), prefix + "UNSPECIFIED");
    EXPECT_EQ(type->value(0)->number(), 0);
    for (int i = 0; i < type->value_count(); ++i) {
      EXPECT_TRUE(type->value(i)->name().starts_with(prefix)) << type->value(i)->name();
    }
  }
}

TEST_F(DescriptorTest, FieldsAreSnakeCaseAndNothingIsAMap) {
  for (const Descriptor* message : Messages()) {
    for (int i = 0; i < message->field_count(); ++i) {
      const FieldDescriptor& field = *message->field(i);
      EXPECT_EQ(field.name(), field.lowercase_name()) << field.full_name();
      // The order of a map on the wire is not fixed, and repeated answers are equal bytes.
      EXPECT_FALSE(field.is_map()) << field.full_name();
    }
  }
}

TEST_F(DescriptorTest, TokensAndBlocksArePackedFixed32) {
  int columns = 0;
  for (const Descriptor* message : Messages()) {
    for (int i = 0; i < message->field_count(); ++i) {
      const FieldDescriptor& field = *message->field(i);
      if (!field.is_repeated() || (field.name() != "tokens" && field.name() != "blocks")) continue;
      EXPECT_EQ(field.type(), FieldDescriptor::TYPE_FIXED32) << field.full_name();
      EXPECT_TRUE(field.is_packed()) << field.full_name();
      ++columns;
    }
  }
  EXPECT_EQ(columns, 5);
}

TEST_F(DescriptorTest, ListsHavePages) {
  for (const MethodDescriptor* method : Methods()) {
    if (!method->name().starts_with("List")) continue;
    EXPECT_NE(method->input_type()->FindFieldByName("page_size"), nullptr) << method->name();
    EXPECT_NE(method->input_type()->FindFieldByName("page_token"), nullptr) << method->name();
    EXPECT_NE(method->output_type()->FindFieldByName("next_page_token"), nullptr) << method->name();
  }
}

// One line for each field and enum value, as far as it matters on the wire.
class Numbers : public DescriptorTest {
 protected:
  std::string Text() const {
    std::ostringstream text;
    for (const Descriptor* message : Messages()) {
      for (int i = 0; i < message->field_count(); ++i) {
        const FieldDescriptor& field = *message->field(i);
        text << field.full_name() << " = " << field.number() << " "
             << (field.is_repeated() ? "repeated " : "") << field.type_name() << "\n";
      }
    }
    for (const EnumDescriptor* type : Enums()) {
      for (int i = 0; i < type->value_count(); ++i) {
        text << type->value(i)->full_name() << " = " << type->value(i)->number() << "\n";
      }
    }
    return text.str();
  }
};

TEST_F(Numbers, AreThoseOfTheGolden) {
  // QUIRE_UPDATE_GOLDEN=1 writes it anew after fields were added on purpose.
  if (std::getenv("QUIRE_UPDATE_GOLDEN") != nullptr) std::ofstream(QUIRE_GOLDEN) << Text();
  std::ifstream stored(QUIRE_GOLDEN);
  std::ostringstream golden;
  golden << stored.rdbuf();
  ASSERT_NE(golden.str(), "");
  EXPECT_EQ(Text(), golden.str());
}

}  // namespace
}  // namespace quire

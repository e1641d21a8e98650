#include "cache_service/config_fields.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/text_format.h>

#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "cache_service/base/error.h"
#include "cache_service/rpc/proto_convert.h"

namespace quire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

absl::Status Bad(const FieldDescriptor& field, const char* expected, const std::string& text) {
  return ToStatus(
      InvalidArgument(field.name(), absl::StrCat("not ", expected, ": ", text), {{"given", text}}));
}

absl::Status OutOfRange(const FieldDescriptor& field, const std::string& text, uint64_t most) {
  return ToStatus(InvalidArgument(field.name(), absl::StrCat(text, " is not from 0 to ", most),
                                  {{"given", text}, {"least", 0}, {"limit", most}}));
}

bool IsInteger(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "-")) absl::ConsumePrefix(&text, "+");
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

// Sizes may have a unit.
absl::Status ParseNumber(const FieldDescriptor& field, const std::string& text, uint64_t most,
                         uint64_t* number) {
  absl::string_view digits = text;
  int shift = 0;
  for (const auto& [suffix, bits] :
       {std::pair("KiB", 10), std::pair("MiB", 20), std::pair("GiB", 30), std::pair("TiB", 40)}) {
    if (absl::ConsumeSuffix(&digits, suffix)) shift = bits;
  }
  if (!IsInteger(digits)) return Bad(field, "a whole number", text);
  if (!absl::SimpleAtoi(digits, number) || *number > most >> shift) {
    return OutOfRange(field, text, most);
  }
  *number <<= shift;
  return absl::OkStatus();
}

absl::Status SetNumber(const FieldDescriptor& field, const std::string& text, Message& message) {
  const bool wide = field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
  const uint64_t most =
      wide ? std::numeric_limits<uint64_t>::max() : std::numeric_limits<uint32_t>::max();
  uint64_t number = 0;
  if (absl::Status status = ParseNumber(field, text, most, &number); !status.ok()) return status;
  if (wide) {
    message.GetReflection()->SetUInt64(&message, &field, number);
  } else {
    message.GetReflection()->SetUInt32(&message, &field, static_cast<uint32_t>(number));
  }
  return absl::OkStatus();
}

// "shared" for POOL_MEMORY_SHARED of PoolMemory; the full name works as well.
absl::Status SetEnum(const FieldDescriptor& field, const std::string& text, Message& message) {
  const std::string wanted = absl::AsciiStrToUpper(text);
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    const auto* value = field.enum_type()->value(i);
    if (value->number() != 0 &&
        (value->name() == wanted || absl::EndsWith(value->name(), "_" + wanted))) {
      message.GetReflection()->SetEnum(&message, &field, value);
      return absl::OkStatus();
    }
  }
  return Bad(field, "a known value", text);
}

absl::Status SetMessage(const FieldDescriptor& field, const std::string& text, Message& message) {
  Message* inner = message.GetReflection()->MutableMessage(&message, &field);
  if (auto* duration = dynamic_cast<google::protobuf::Duration*>(inner)) {
    absl::Duration parsed;
    if (!absl::ParseDuration(text, &parsed) ||
        absl::AbsDuration(parsed) == absl::InfiniteDuration()) {
      return Bad(field, "a duration such as 1m30s", text);
    }
    duration->set_seconds(absl::IDivDuration(parsed, absl::Seconds(1), &parsed));
    duration->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(parsed)));
    return absl::OkStatus();
  }
  if (!google::protobuf::TextFormat::ParseFromString(text, inner)) {
    return Bad(field, "text format", text);
  }
  return absl::OkStatus();
}

absl::Status CheckField(const FieldDescriptor& field, const Message& message) {
  const google::protobuf::Reflection& fields = *message.GetReflection();
  if (field.is_repeated() || !fields.HasField(message, &field)) return absl::OkStatus();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
      fields.GetString(message, &field).empty()) {
    return ToStatus(InvalidArgument(field.name(), "needs a value"));
  }
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return absl::OkStatus();
  const auto* duration =
      dynamic_cast<const google::protobuf::Duration*>(&fields.GetMessage(message, &field));
  return duration == nullptr ? absl::OkStatus() : CheckDuration(*duration, field.name());
}

}  // namespace

std::vector<std::string> FlagFields(const Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) {
    if (!message.field(i)->is_repeated()) names.push_back(message.field(i)->name());
  }
  return names;
}

absl::Status SetField(const std::string& name, const std::string& text, Message& message) {
  const FieldDescriptor& field = *message.GetDescriptor()->FindFieldByName(name);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      message.GetReflection()->SetString(&message, &field, text);
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return SetNumber(field, text, message);
    case FieldDescriptor::CPPTYPE_ENUM:
      return SetEnum(field, text, message);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return SetMessage(field, text, message);
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double number = 0;
      if (!absl::SimpleAtod(text, &number)) return Bad(field, "a number", text);
      message.GetReflection()->SetDouble(&message, &field, number);
      return absl::OkStatus();
    }
    default:
      return Bad(field, "settable by text", text);
  }
}

absl::Status CheckFields(const Message& message) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const absl::Status status = CheckField(*message.GetDescriptor()->field(i), message);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace quire

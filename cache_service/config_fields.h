// Fields of the configuration messages by name and text, so that one table of flags serves them
// all.
#ifndef QUIRE_CACHE_SERVICE_CONFIG_FIELDS_H_
#define QUIRE_CACHE_SERVICE_CONFIG_FIELDS_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace quire {

// Names of all fields that a flag can set, in order.
std::vector<std::string> FlagFields(const google::protobuf::Descriptor& message);

// Sets one field from text: numbers with an optional KiB, MiB or GiB, durations such as 1m30s, enum
// values without their prefix, messages in text format. Errors: INVALID_ARGUMENT for the field.
absl::Status SetField(const std::string& name, const std::string& text,
                      google::protobuf::Message& message);

// What no given field may be, whatever it means: empty text, or a duration that is none. Errors:
// INVALID_ARGUMENT for the field.
absl::Status CheckFields(const google::protobuf::Message& message);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_CONFIG_FIELDS_H_

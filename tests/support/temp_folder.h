// A folder of its own for each test, short enough for socket paths, removed at the end.
#ifndef QUIRE_TESTS_SUPPORT_TEMP_FOLDER_H_
#define QUIRE_TESTS_SUPPORT_TEMP_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace quire {

class TempFolder {
 public:
  explicit TempFolder(const char* parent = "/tmp") : path_(std::string(parent) + "/quire-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp " + path_);
  }

  ~TempFolder() {
    if (path_.empty()) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  // The other one then has none.
  TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}

  TempFolder& operator=(TempFolder&&) = delete;

  const std::string& path() const { return path_; }

  std::string File(const std::string& name) const { return path_ + "/" + name; }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  std::string path_;
};

}  // namespace quire

#endif  // QUIRE_TESTS_SUPPORT_TEMP_FOLDER_H_

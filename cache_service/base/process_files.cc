#include "cache_service/base/process_files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace quire {

void OpenStandardFiles() {
  while (true) {
    const int fd = open("/dev/null", O_RDWR);
    if (fd > STDERR_FILENO) close(fd);
    if (fd < 0 || fd > STDERR_FILENO) return;
  }
}

void RaiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  // One that may not be raised stays what it is.
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace quire

// What a program sees to before it opens its first file.
#ifndef QUIRE_CACHE_SERVICE_BASE_PROCESS_FILES_H_
#define QUIRE_CACHE_SERVICE_BASE_PROCESS_FILES_H_

namespace quire {

// Opens those of the standard input, output and error that the program was started without:
// whatever is opened in their place would get its output.
void OpenStandardFiles();

// As many open files as the hard limit allows: a gRPC server that once could not accept a
// connection for want of a descriptor never accepts one again.
void RaiseFileLimit();

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_BASE_PROCESS_FILES_H_

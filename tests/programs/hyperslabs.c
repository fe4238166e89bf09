// Hyperslabs of one data set of parallel HDF5, written and read by all ranks, collectively or independently.
//
//   hyperslabs FILE collective|independent
//
// HDF5 makes derived datatypes of the selections, for memory and for the file. What is read back is compared with what
// was written, element by element, and whoever runs this compares the bytes of the files. Messages of the like
// selections, made by the program itself, cross as well, so that there is packing to count.
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 96, COLUMNS = 80, BORDER = 3, MEMORY_ROWS = ROWS + 2 * BORDER, MEMORY_COLUMNS = COLUMNS + 2 * BORDER };

static int value_at(int rank, int row, int column) { return rank * 1000000 + row * 1000 + column; }

/// This rank's part: every second row, and of those the columns that other ranks' columns alternate with.
static hid_t select_in_file(hid_t data_set, int rank, int ranks) {
  const hsize_t start[2] = {1, (hsize_t)rank}, stride[2] = {2, (hsize_t)ranks}, count[2] = {ROWS / 2, COLUMNS};
  const hid_t space = H5Dget_space(data_set);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL);
  return space;
}

/// The inside of memory with a border.
static hid_t select_in_memory(void) {
  const hsize_t dimensions[2] = {MEMORY_ROWS, MEMORY_COLUMNS};
  const hsize_t start[2] = {BORDER, BORDER}, count[2] = {ROWS / 2, COLUMNS};
  const hid_t space = H5Screate_simple(2, dimensions, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
  return space;
}

static hid_t open_file(const char* path, int creates) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  const hid_t file =
      creates ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access) : H5Fopen(path, H5F_ACC_RDONLY, access);
  H5Pclose(access);
  return file;
}

static hid_t create_data_set(hid_t file, int ranks) {
  const hsize_t dimensions[2] = {ROWS, (hsize_t)COLUMNS * (hsize_t)ranks};
  const hid_t space = H5Screate_simple(2, dimensions, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
  // Without the time of creation, and with the gaps filled, equal data makes equal files.
  H5Pset_obj_track_times(creation, 0);
  H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(creation, H5D_FILL_TIME_ALLOC);
  const hid_t data_set = H5Dcreate2(file, "field", H5T_NATIVE_INT, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  H5Pclose(creation);
  H5Sclose(space);
  return data_set;
}

/// Writes `memory`, or reads into it. Returns a negative number where HDF5 does.
static herr_t move(hid_t data_set, H5FD_mpio_xfer_t how, int* memory, int writes) {
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const hid_t in_file = select_in_file(data_set, rank, ranks), in_memory = select_in_memory();
  const hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(transfer, how);
  const herr_t result = writes ? H5Dwrite(data_set, H5T_NATIVE_INT, in_memory, in_file, transfer, memory)
                               : H5Dread(data_set, H5T_NATIVE_INT, in_memory, in_file, transfer, memory);
  H5Pclose(transfer);
  H5Sclose(in_memory);
  H5Sclose(in_file);
  return result;
}

/// How many elements of `memory` are not what `rank` wrote, or, in the border, not what stood there.
static int count_wrong(const int* memory, int rank) {
  int wrong = 0;
  for (int row = 0; row < MEMORY_ROWS; ++row)
    for (int column = 0; column < MEMORY_COLUMNS; ++column) {
      const int inside = row >= BORDER && row < BORDER + ROWS / 2 && column >= BORDER && column < BORDER + COLUMNS;
      const int wanted = inside ? value_at(rank, row, column) : -1;
      wrong += memory[row * MEMORY_COLUMNS + column] != wanted;
    }
  return wrong;
}

/// The inside of `memory` to the next rank, and into `into` what the rank before sends.
static void pass_on(const int* memory, int* into, int rank, int ranks) {
  const int sizes[2] = {MEMORY_ROWS, MEMORY_COLUMNS}, part[2] = {ROWS / 2, COLUMNS}, start[2] = {BORDER, BORDER};
  MPI_Datatype inside;
  MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_INT, &inside);
  MPI_Type_commit(&inside);
  MPI_Sendrecv(memory, 1, inside, (rank + 1) % ranks, 0, into, 1, inside, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Type_free(&inside);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  const H5FD_mpio_xfer_t how = strcmp(argv[2], "collective") == 0 ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT;

  const size_t elements = (size_t)MEMORY_ROWS * MEMORY_COLUMNS;
  int* const written = malloc(elements * sizeof(int));
  int* const seen = malloc(elements * sizeof(int));
  for (int row = 0; row < MEMORY_ROWS; ++row)
    for (int column = 0; column < MEMORY_COLUMNS; ++column)
      written[row * MEMORY_COLUMNS + column] = value_at(rank, row, column);
  memset(seen, -1, elements * sizeof(int));

  hid_t file = open_file(argv[1], 1);
  hid_t data_set = create_data_set(file, ranks);
  int failed = move(data_set, how, written, 1) < 0;
  H5Dclose(data_set);
  failed |= H5Fclose(file) < 0;

  file = open_file(argv[1], 0);
  data_set = H5Dopen2(file, "field", H5P_DEFAULT);
  failed |= move(data_set, how, seen, 0) < 0;
  H5Dclose(data_set);
  H5Fclose(file);
  const int wrong_in_file = count_wrong(seen, rank);
  memset(seen, -1, elements * sizeof(int));
  pass_on(written, seen, rank, ranks);
  const int wrong_in_message = count_wrong(seen, (rank + ranks - 1) % ranks);
  printf("rank %d: failed %d, wrong in the file %d, wrong in the message %d\n", rank, failed, wrong_in_file,
         wrong_in_message);
  free(written);
  free(seen);
  MPI_Finalize();
  return 0;
}

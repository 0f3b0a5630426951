"""Events as files of rows (`epochal.contrib.transfer.rows`), and SQL over them."""

"""Events as files of rows (`epochal.rows`), and SQL over them."""

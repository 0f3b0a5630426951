"""The console: a local web page on a deployment, with the credentials of whoever starts it.

It only reads. Every page is bounded, says what it cost, and is whole without JavaScript.
"""

"""The console: a local web page on a deployment, with the credentials of whoever starts it.

Every page is bounded, says what it cost, and is whole without JavaScript. It changes what reactions have parked, and
nothing else.
"""
